//! Max-min fair shares: everyone gets the same until something is full, then the others go on.

/// The rates of flows over shared resources.
///
/// `costs[f]` lists what flow `f` takes of each resource per unit of rate, as (resource, cost); `caps[f]` is what it can
/// do alone. A resource is full at a total of 1. The answer is the max-min fair allocation by progressive filling: no
/// flow can have more without one that has no more than it getting less. Costs must not be negative.
pub fn max_min(costs: &[Vec<(usize, f64)>], caps: &[f64], resources: usize) -> Vec<f64> {
    let flows = costs.len().min(caps.len());
    let mut rates = vec![0.0; flows];
    let mut frozen = vec![false; flows];
    let mut left = vec![1.0f64; resources];
    // Each round freezes at least one flow.
    for _ in 0..flows {
        let mut load = vec![0.0f64; resources];
        for f in (0..flows).filter(|f| !frozen[*f]) {
            for (resource, cost) in &costs[f] {
                load[*resource] += cost;
            }
        }
        let mut step = f64::INFINITY;
        for (load, left) in load.iter().zip(&left) {
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
            for (resource, cost) in &costs[f] {
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
