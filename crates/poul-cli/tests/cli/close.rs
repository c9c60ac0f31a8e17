//! Lines that say the same: words are equal, and so are whole numbers; numbers with a fraction and percentages are close.
//!
//! Pages show figures of trained networks, whose last digits change whenever arithmetic does; the prose around them does not.

/// Figures may differ by this share of the larger one.
const TOLERANCE: f64 = 0.02;

/// Whether two lines say the same. How far columns are apart does not matter: they move with the width of figures.
pub(crate) fn is_close(found: &str, expected: &str) -> bool {
    let (found, expected) = (pieces(found), pieces(expected));
    found.len() == expected.len() && found.iter().zip(&expected).all(|(a, b)| a.is_close(b))
}

#[derive(Debug, PartialEq)]
enum Piece<'t> {
    Word(&'t str),
    /// A figure as it is written, and whether it may be off.
    Figure(&'t str, bool),
}

impl Piece<'_> {
    fn is_close(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Figure(a, true), Self::Figure(b, true)) => are_close(a, b),
            _ => self == other,
        }
    }
}

/// Within the tolerance, or the same to two significant digits.
fn are_close(a: &str, b: &str) -> bool {
    let number = |text: &str| text.replace(',', "").replace('−', "-").parse::<f64>();
    let (Ok(a), Ok(b)) = (number(a), number(b)) else { return false };
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()) || format!("{a:.1e}") == format!("{b:.1e}")
}

/// Figures and what stands between them, without space.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        // A digit inside a word (`T2`, `a1`) is a part of the word.
        let before = rest[..start].chars().next_back();
        let is_signed = matches!(before, Some('-' | '−' | '+'));
        let is_inside = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let end = start + figure_length(&rest[start..]);
        let first = match before {
            Some(sign) if is_signed => start - sign.len_utf8(),
            _ => start,
        };
        let figure = &rest[first..end];
        pieces.extend(rest[..first].split_whitespace().map(Piece::Word));
        let may_be_off = figure.contains('.') || rest[end..].starts_with(" %");
        pieces.push(match is_inside {
            true => Piece::Word(figure),
            false => Piece::Figure(figure, may_be_off),
        });
        rest = &rest[end..];
    }
    pieces.extend(rest.split_whitespace().map(Piece::Word));
    pieces
}

/// The bytes of a figure at the beginning: digits with thousands apart, a fraction, an exponent.
fn figure_length(text: &str) -> usize {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(text);
    while text[end..].starts_with(',') && digits(&text[end + 1..]) == 3 {
        end += 4;
    }
    if text[end..].starts_with('.') && digits(&text[end + 1..]) > 0 {
        end += 1 + digits(&text[end + 1..]);
    }
    let exponent = text[end..].strip_prefix('e').map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    match exponent.map(digits) {
        Some(n) if n > 0 => text.len() - exponent.map_or(0, str::len) + n,
        _ => end,
    }
}

#[test]
fn close_figures_are_the_same_and_wrong_ones_are_not() {
    let line = "gmv      T2   1,204   0.4312   -0.1234 … 0.9871   40 % kept";
    for close in [
        line,
        "gmv T2 1,204 0.4330 -0.1241 … 0.9799 40 % kept",
        "gmv  T2  1,204  0.4299   -0.1229 …  0.9851   40 % kept",
    ] {
        assert!(is_close(close, line), "{close}");
    }
    for wrong in [
        "gmv      T2   1,204   0.4712   -0.1234 … 0.9871   40 % kept",
        "gmv      T2   1,204   0.4312    0.1234 … 0.9871   40 % kept",
        "gmv      T2   1,205   0.4312   -0.1234 … 0.9871   40 % kept",
        "gmv      T3   1,204   0.4312   -0.1234 … 0.9871   40 % kept",
        "gmv      T2   1,204   0.4312   -0.1234 … 0.9871   50 % kept",
        "gmv      T2   1,204   0.4312   -0.1234 … 0.9871   40 % lost",
        "gmv      T2   1,204   0.4312   -0.1234 … 0.9871",
        "gmv      T2   1,204   –        -0.1234 … 0.9871   40 % kept",
    ] {
        assert!(!is_close(wrong, line), "{wrong}");
    }
    assert!(is_close("loss 1.234e-5", "loss 1.240e-5") && !is_close("loss 1.234e-5", "loss 1.234e-6"));
    assert!(is_close("0.0095 s", "0.0096 s") && !is_close("version 12", "version 13"));
}
