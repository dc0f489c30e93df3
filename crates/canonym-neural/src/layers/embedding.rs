//! Embeddings: rows of a table of weights. Inference reads rows of the table itself.

use canonym_core::Result;

use crate::autograd::{Tape, Var};
use crate::tensor::segments::Segments;

/// The rows `ids` of the table `name`, `[ids, dim]`, in the training graph.
///
/// # Errors
/// If the table is missing.
pub fn embedding(tape: &mut Tape<'_>, name: &str, ids: Vec<u32>) -> Result<Var> {
    let table = tape.parameter(name)?;
    Ok(tape.gather(table, ids))
}

/// The position of each row in its sequence, from 0.
pub fn positions_of(segments: &Segments) -> Vec<u32> {
    segments.iter().flat_map(|rows| 0..rows.len() as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::differences::{check, drawn};
    use crate::tensor::parameters::Parameters;
    use crate::tensor::random::SplitMix64;

    #[test]
    fn each_row_is_that_of_its_id() {
        let mut parameters = Parameters::default();
        parameters.add("position", drawn(4, 3, &mut SplitMix64::new(1)));
        let ids = positions_of(&Segments::of_lengths([3, 1, 2]));
        assert_eq!(ids, [0, 1, 2, 0, 0, 1]);
        let mut tape = Tape::new(&parameters);
        let rows = embedding(&mut tape, "position", ids.clone()).unwrap();
        for (row, id) in ids.iter().enumerate() {
            assert_eq!(tape.value(rows).row(row), parameters.get("position").unwrap().row(*id as usize));
        }
        assert!(embedding(&mut tape, "word", ids.clone()).is_err());
        check(&parameters, |tape| embedding(tape, "position", ids.clone()).unwrap());
    }
}
