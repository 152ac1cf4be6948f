//! Contenders that alternate: what drifts on a machine hits all of them alike.

/// Runs each contender once a round, the order turned by one from round to round, so that none always follows the same.
/// Returns what each gave, by contender, in the order of the rounds.
pub fn alternate<C, T, E>(
    contenders: &[C],
    rounds: usize,
    mut run: impl FnMut(usize, &C) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut results: Vec<Vec<T>> = contenders.iter().map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for place in 0..contenders.len() {
            let number = (place + round) % contenders.len();
            results[number].push(run(round, &contenders[number])?);
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_turns() {
        let mut order = String::new();
        let found = alternate(&['a', 'b', 'c'], 2, |round, name| {
            order.push(*name);
            Ok::<_, ()>((round, *name))
        });
        assert_eq!(order, "abcbca");
        assert_eq!(found.unwrap()[2], [(0, 'c'), (1, 'c')]);
        assert_eq!(alternate(&['a'], 2, |round, _| if round == 1 { Err(round) } else { Ok(()) }), Err(1));
    }
}
