//! What can happen next, as one word.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Boot,
    Hear(u32),
    Ask(u32),
    Fire(u32),
    Crash,
    Restart {
        forget: bool,
    },
    Lose,
    /// Who is cut off from the others, a bit each.
    Split(u32),
    Heal,
    /// The number of a span of time.
    Pass(u32),
    /// The word of what happens at a process that crashes between saving and sending.
    Unsent(u32),
}

const KIND: u32 = 27;
const UNSENT: u32 = 1 << 31;
const ARGUMENT: u32 = (1 << KIND) - 1;

impl Code {
    #[inline]
    pub(crate) fn word(self) -> u32 {
        let (kind, argument) = match self {
            Self::Hear(packet) => (0, packet),
            Self::Ask(request) => (1, request),
            Self::Fire(timer) => (2, timer),
            Self::Crash => (3, 0),
            Self::Restart { forget } => (4, u32::from(forget)),
            Self::Boot => (5, 0),
            Self::Lose => (6, 0),
            Self::Split(side) => (7, side),
            Self::Heal => (8, 0),
            Self::Pass(span) => (9, span),
            Self::Unsent(word) => return word | UNSENT,
        };
        assert!(argument <= ARGUMENT, "more messages than numbers for them");
        kind << KIND | argument
    }

    pub(crate) fn of(word: u32) -> Self {
        if word & UNSENT != 0 {
            return Self::Unsent(word & !UNSENT);
        }
        let argument = word & ARGUMENT;
        match word >> KIND {
            0 => Self::Hear(argument),
            1 => Self::Ask(argument),
            2 => Self::Fire(argument),
            3 => Self::Crash,
            4 => Self::Restart { forget: argument == 1 },
            5 => Self::Boot,
            6 => Self::Lose,
            7 => Self::Split(argument),
            8 => Self::Heal,
            9 => Self::Pass(argument),
            kind => unreachable!("no code has kind {kind}"),
        }
    }

    pub(crate) fn is_unsent(self) -> bool {
        matches!(self, Self::Unsent(_))
    }

    /// What happens before the crash, if there is one.
    pub(crate) fn bare(self) -> Self {
        match self {
            Self::Unsent(word) => Self::of(word),
            code => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn codes_read_back_as_written() {
        let codes = [
            Code::Boot,
            Code::Hear(70_000),
            Code::Ask(3),
            Code::Fire(9),
            Code::Crash,
            Code::Restart { forget: true },
            Code::Lose,
            Code::Split(5),
            Code::Heal,
            Code::Pass(4),
            Code::Unsent(Code::Hear(7).word()),
        ];
        for code in codes {
            assert_eq!(Code::of(code.word()), code);
        }
        assert_eq!(codes[10].bare(), Code::Hear(7));
    }
}
