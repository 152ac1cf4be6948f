//! What is seen of a block's ports, clock by clock, and what of it goes into a picture.

use linerate_rtl_sim::{Dut, Port};
use std::ops::Range;

/// A signal in one clock: what it is just before the clock's rising edge, which is when everything looks at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sample {
    /// A single bit.
    Bit(bool),
    /// A bus that means nothing now.
    Idle,
    /// A bus with a value.
    Value {
        /// As it is written into the picture.
        text: String,
        /// Which colour it has: a frame's beats have the same.
        shade: usize,
    },
}

impl Sample {
    /// A value.
    pub fn value(text: impl Into<String>, shade: usize) -> Sample {
        Sample::Value { text: text.into(), shade }
    }
}

/// A signal as it was recorded.
#[derive(Debug)]
pub struct Row {
    /// The port's name, or what is shown of it.
    pub name: String,
    /// One for each clock.
    pub samples: Vec<Sample>,
}

impl Row {
    /// The first clock from `from` on in which a bit is set.
    pub fn rises(&self, from: usize) -> Option<usize> {
        (from..self.samples.len()).find(|at| self.samples[*at] == Sample::Bit(true))
    }

    /// The first clock from `from` on in which it has a value that begins so.
    pub fn shows(&self, from: usize, start: &str) -> Option<usize> {
        (from..self.samples.len()).find(|at| match &self.samples[*at] {
            Sample::Value { text, .. } => text.starts_with(start),
            _ => false,
        })
    }
}

/// A number of clocks that is worth being told.
#[derive(Debug)]
pub struct Span {
    pub from: usize,
    pub to: usize,
    pub text: String,
}

impl Span {
    /// With the number of clocks.
    pub fn label(&self) -> String {
        let clocks = self.to - self.from;
        format!("{clocks} clock{} {}", if clocks == 1 { "" } else { "s" }, self.text)
    }
}

/// All that is drawn.
#[derive(Debug)]
pub struct Picture {
    /// Said above.
    pub title: String,
    /// Said below, line by line.
    pub caption: Vec<String>,
    pub rows: Vec<Row>,
    pub spans: Vec<Span>,
    /// The clocks that are shown, in order; what lies between is left out.
    pub windows: Vec<Range<usize>>,
}

impl Picture {
    /// A row by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn row(&self, name: &str) -> Result<&Row, String> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| format!("there is no row {name:?}"))
    }

    /// Adds the clocks between what two rows show: `(row, from which clock on, what)`, where what is the start of a value, and
    /// empty for a bit that is set.
    ///
    /// # Errors
    /// One of the two was never seen, or the second came first.
    pub fn measure(
        &mut self,
        from: (&str, usize, &str),
        to: (&str, &str),
        text: &str,
    ) -> Result<usize, String> {
        let find = |name: &str, since: usize, start: &str| {
            let row = self.row(name)?;
            let found = if start.is_empty() { row.rises(since) } else { row.shows(since, start) };
            found.ok_or_else(|| format!("{name} never shows {start:?} from clock {since} on"))
        };
        let begin = find(from.0, from.1, from.2)?;
        let end = find(to.0, begin, to.1)?;
        self.spans.push(Span { from: begin, to: end, text: text.to_owned() });
        Ok(end)
    }
}

/// Looks at a port, or several.
type Look = Box<dyn FnMut(&Dut) -> Sample>;

/// What records.
#[derive(Default)]
pub struct Scope {
    looks: Vec<Look>,
    rows: Vec<Row>,
}

impl Scope {
    /// Shows what `look` says, called once in each clock.
    pub fn add(&mut self, name: &str, look: impl FnMut(&Dut) -> Sample + 'static) {
        self.rows.push(Row { name: name.to_owned(), samples: Vec::new() });
        self.looks.push(Box::new(look));
    }

    /// Shows one bit of a port.
    pub fn bit(&mut self, dut: &Dut, name: &str, bit: u32) -> Result<(), String> {
        let port = dut.port(name)?;
        let name = if dut.bits(port) == 1 { name.to_owned() } else { format!("{name}[{bit}]") };
        self.add(&name, move |dut| Sample::Bit(dut.get(port) >> bit & 1 == 1));
        Ok(())
    }

    /// Shows a stream: the beats by the names of the frames in their order, and the handshake.
    pub fn stream(
        &mut self,
        dut: &Dut,
        prefix: &str,
        frames: &'static [&str],
        shade: usize,
    ) -> Result<(), String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        let (valid, ready, last) = (port("tvalid")?, port("tready")?, port("tlast")?);
        self.bit(dut, &format!("{prefix}_tvalid"), 0)?;
        let mut beats = Beats { frames, frame: 0, beat: 0, shade };
        self.add(&format!("{prefix}_tdata"), move |dut| {
            beats.look(dut.get(valid) != 0, dut.get(ready) != 0, dut.get(last) != 0)
        });
        self.add(&format!("{prefix}_tlast"), move |dut| Sample::Bit(dut.get(valid) & dut.get(last) != 0));
        Ok(())
    }

    /// Shows something only in the last beats of a stream's frames.
    pub fn with_last(
        &mut self,
        dut: &Dut,
        prefix: &str,
        name: &str,
        mut show: impl FnMut(&Dut) -> String + 'static,
    ) -> Result<(), String> {
        let port = |name: &str| dut.port(&format!("{prefix}_{name}"));
        let (valid, last): (Port, Port) = (port("tvalid")?, port("tlast")?);
        self.add(name, move |dut| match dut.get(valid) & dut.get(last) {
            0 => Sample::Idle,
            _ => Sample::value(show(dut), PLAIN),
        });
        Ok(())
    }

    /// Looks at everything; to be called when the ports have settled.
    pub fn sample(&mut self, dut: &Dut) {
        for (row, look) in self.rows.iter_mut().zip(&mut self.looks) {
            row.samples.push(look(dut));
        }
    }

    /// Clocks so far.
    pub fn clocks(&self) -> usize {
        self.rows.first().map_or(0, |row| row.samples.len())
    }

    /// Ends the recording.
    pub fn picture(self, title: &str, caption: &[&str]) -> Picture {
        let clocks = self.clocks();
        Picture {
            title: title.to_owned(),
            caption: caption.iter().map(|line| (*line).to_owned()).collect(),
            rows: self.rows,
            spans: Vec::new(),
            windows: std::iter::once(0..clocks).collect(),
        }
    }
}

/// The colour of what belongs to no frame.
pub const PLAIN: usize = usize::MAX;

/// Names the beats of a stream.
struct Beats {
    frames: &'static [&'static str],
    frame: usize,
    beat: usize,
    /// Of the first frame.
    shade: usize,
}

impl Beats {
    fn look(&mut self, valid: bool, ready: bool, last: bool) -> Sample {
        if !valid {
            return Sample::Idle;
        }
        let frame = self.frames.get(self.frame).copied().unwrap_or("?");
        let sample = Sample::value(format!("{frame}{}", self.beat), self.shade + self.frame);
        if ready {
            self.beat += 1;
            if last {
                (self.frame, self.beat) = (self.frame + 1, 0);
            }
        }
        sample
    }
}
