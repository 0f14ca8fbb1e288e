//! Random columns and values of each engine, as SQL.

/// What a column's values mean, which decides when two texts of a value are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A whole or a decimal number.
    Number,
    Float32,
    Float64,
    Bool,
    /// Text or bytes, byte by byte.
    Bytes,
    /// Text whose spaces at the end have no meaning.
    Padded,
    /// A date, a time or both.
    Time,
    Uuid,
    Json,
    /// Values of any type: of SQLite.
    Any,
}

/// Random numbers: Sebastiano Vigna's splitmix64.
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let once = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let twice = (once ^ (once >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        twice ^ (twice >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// A whole number that fits so many bits, often one at an end.
    pub fn whole(&mut self, bits: u32, signed: bool) -> i128 {
        let (low, high) = if signed {
            (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
        } else {
            (0, (1i128 << bits) - 1)
        };
        match self.below(6) {
            0 => low,
            1 => high,
            2 => i128::from(self.below(3)),
            _ => low + (i128::from(self.next()) << 64 | i128::from(self.next())).rem_euclid(high - low + 1),
        }
    }

    /// A decimal number of at most so many digits before and after the point.
    pub fn decimal(&mut self, before: u32, after: u32) -> String {
        let digits = |count: u32, draw: &mut Self| -> String {
            let count = if draw.one_in(3) { count } else { draw.below(u64::from(count) + 1) as u32 };
            (0..count).map(|_| char::from(b'0' + draw.below(10) as u8)).collect()
        };
        let (whole, part) = (digits(before, self), digits(after, self));
        let sign = if self.one_in(3) { "-" } else { "" };
        let point = if part.is_empty() { "" } else { "." };
        format!("{sign}{}{point}{part}", if whole.is_empty() { "0" } else { &whole })
    }

    pub fn float32(&mut self) -> f32 {
        match self.below(4) {
            0 => (self.below(2_000) as f32 - 1_000.0) / 8.0,
            1 => self.of(&[0.0, -0.0, 0.1, 1.0 / 3.0, 16_777_217.0, f32::MAX, f32::MIN_POSITIVE]),
            _ => Some(f32::from_bits(self.next() as u32)).filter(|n| n.is_normal()).unwrap_or(1.5),
        }
    }

    pub fn float64(&mut self) -> f64 {
        match self.below(4) {
            0 => (self.below(2_000) as f64 - 1_000.0) / 8.0,
            1 => self.of(&[0.0, -0.0, 0.1, 1.0 / 3.0, 9_007_199_254_740_993.0, 1e300, 5e-300]),
            _ => Some(f64::from_bits(self.next())).filter(|n| n.is_normal()).unwrap_or(1.5),
        }
    }

    /// Text of at most so many characters.
    pub fn text(&mut self, most: u64) -> String {
        const WORDS: [&str; 24] = [
            "a", "B", "7", " ", "  ", "'", "\"", "\\", "\\N", "%", "\t", "\n", "\r", "é", "ß", "東", "😀",
            "\u{1}", "|", ";", "null", "`", "$1", "\u{a0}",
        ];
        let mut text = String::new();
        for _ in 0..self.below(most.min(30) + 1) {
            let word = self.of(&WORDS);
            if (text.chars().count() + word.chars().count()) as u64 <= most {
                text.push_str(word);
            }
        }
        text
    }

    pub fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most.min(40) + 1))
            .map(|_| if self.one_in(5) { 0 } else { self.next() as u8 })
            .collect()
    }

    pub fn date(&mut self) -> String {
        let year = match self.below(4) {
            0 => 1 + self.below(9_999),
            _ => 1970 + self.below(80),
        };
        format!("{year:04}-{:02}-{:02}", 1 + self.below(12), 1 + self.below(28))
    }

    pub fn hour(&mut self, digits: u32) -> String {
        let clock = format!("{:02}:{:02}:{:02}", self.below(24), self.below(60), self.below(60));
        if digits == 0 || self.one_in(3) {
            return clock;
        }
        let part = self.below(10u64.pow(digits));
        format!("{clock}.{part:0width$}", width = digits as usize)
    }

    pub fn uuid(&mut self) -> String {
        let digits = format!("{:016x}{:016x}", self.next(), self.next());
        [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
    }

    pub fn json(&mut self, depth: u32) -> String {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => "null".to_owned(),
            1 => self.of(&["true", "false"]).to_owned(),
            2 => self.whole(64, true).to_string(),
            3 => format!("{:?}", (self.below(2_000_000) as f64 - 1e6) / 64.0),
            4 => serde_json::to_string(&self.text(12)).unwrap(),
            5 => {
                let parts: Vec<String> = (0..self.below(4)).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", parts.join(", "))
            }
            _ => {
                let parts: Vec<String> = ["b", "a", "é \"", ""]
                    .iter()
                    .take(self.below(5) as usize)
                    .map(|key| format!("{} : {}", serde_json::to_string(key).unwrap(), self.json(depth - 1)))
                    .collect();
                format!("{{{}}}", parts.join(" ,"))
            }
        }
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The literal of one value.
pub type Literal = Box<dyn Fn(&mut Draw) -> String>;
