//! Max-min fair shares: everyone gets the same until something is full, then the others go on.

/// The rates of flows over shared resources.
///
/// `costs[f]` lists what flow `f` takes of each resource per unit of rate, as (resource, cost); `caps[f]` is what it can
/// do alone. A resource is full at a total of 1. The answer is the max-min fair allocation by progressive filling: no
/// flow can have more without one that has no more than it getting less. Costs must not be negative.
pub fn max_min(costs: &[Vec<(usize, f64)>], caps: &[f64], resources: usize) -> Vec<f64> {
    let costs: Vec<&[(usize, f64)]> = costs.iter().map(Vec::as_slice).collect();
    fill(&costs, caps, &mut vec![1.0f64; resources])
}

/// Progressive filling of what is left of each resource.
fn fill(costs: &[&[(usize, f64)]], caps: &[f64], left: &mut [f64]) -> Vec<f64> {
    let flows = costs.len().min(caps.len());
    let mut rates = vec![0.0; flows];
    let mut frozen = vec![false; flows];
    // Each round freezes at least one flow.
    for _ in 0..flows {
        let mut load = vec![0.0f64; left.len()];
        for f in (0..flows).filter(|f| !frozen[*f]) {
            for (resource, cost) in costs[f] {
                load[*resource] += cost;
            }
        }
        let mut step = f64::INFINITY;
        for (load, left) in load.iter().zip(left.iter()) {
            if *load > 0.0 {
                step = step.min(left.max(0.0) / load);
            }
        }
        for f in (0..flows).filter(|f| !frozen[*f]) {
            step = step.min(caps[f] - rates[f]);
        }
        if !step.is_finite() {
            break;
        }
        let step = step.max(0.0);
        for f in (0..flows).filter(|f| !frozen[*f]) {
            rates[f] += step;
            for (resource, cost) in costs[f] {
                left[*resource] -= cost * step;
            }
        }
        for f in 0..flows {
            let full = costs[f].iter().any(|(resource, cost)| *cost > 0.0 && left[*resource] <= 1e-12);
            frozen[f] |= full || rates[f] >= caps[f] * (1.0 - 1e-12);
        }
        if frozen.iter().all(|frozen| *frozen) {
            break;
        }
    }
    rates
}

/// As [`max_min`], but flows of a smaller number take what they need before those of a larger one.
pub fn by_priority(costs: &[&[(usize, f64)]], caps: &[f64], priorities: &[u8], resources: usize) -> Vec<f64> {
    let mut rates = vec![0.0; costs.len().min(caps.len()).min(priorities.len())];
    let mut left = vec![1.0f64; resources];
    let mut levels: Vec<u8> = priorities.to_vec();
    levels.sort_unstable();
    levels.dedup();
    for level in levels {
        let own: Vec<usize> = (0..rates.len()).filter(|&f| priorities[f] == level).collect();
        let of: Vec<&[(usize, f64)]> = own.iter().map(|&f| costs[f]).collect();
        let most: Vec<f64> = own.iter().map(|&f| caps[f]).collect();
        for (&f, rate) in own.iter().zip(fill(&of, &most, &mut left)) {
            rates[f] = rate;
        }
    }
    rates
}
