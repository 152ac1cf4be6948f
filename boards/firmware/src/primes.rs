//! What a board is there for besides serving: here the search for the largest prime below a bound, over and over. How many rounds
//! it makes while the network is busy says what the network leaves of the processor.

const BOUND: u32 = 65_536;

/// The search.
#[derive(Clone, Copy, Debug)]
pub struct Primes {
    next: u32,
    rounds: u32,
}

impl Default for Primes {
    fn default() -> Self {
        Primes::new()
    }
}

impl Primes {
    /// At its beginning.
    pub const fn new() -> Primes {
        Primes { next: BOUND, rounds: 0 }
    }

    /// Rounds so far.
    pub const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Looks at one number: a microsecond or less.
    #[inline]
    pub fn step(&mut self) {
        let number = core::hint::black_box(self.next);
        let is_prime = (2..).take_while(|by| by * by <= number).all(|by| !number.is_multiple_of(by));
        if is_prime {
            self.rounds += 1;
        }
        self.next = if is_prime { BOUND } else { number - 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_at_the_largest_prime() {
        let mut primes = Primes::new();
        let steps = (1..).take_while(|_| {
            let before = primes.rounds();
            primes.step();
            primes.rounds() == before
        });
        // 65,521 is the largest prime below 2^16.
        assert_eq!(steps.count(), 65_536 - 65_521);
        assert_eq!(primes.rounds(), 1);
    }
}
