//! What an evaluation amounts to, for a person: a line for each question, and the sentence at the end.

use poul::evaluate::{Evaluation, Grade, verdicts};

/// Nothing where nothing was compared.
pub(super) fn summary(evaluation: &Evaluation) -> String {
    let verdicts = verdicts(evaluation);
    if verdicts.outcomes.is_empty() {
        return String::new();
    }
    let mut text = "\nVerdicts, within policies\n".to_owned();
    for own in &verdicts.outcomes {
        for judgement in [&own.ranking, &own.sizes] {
            let grade = match judgement.grade {
                Grade::Good => "good",
                Grade::Mixed => "mixed",
                Grade::Poor => "POOR",
                Grade::Undecided => "undecided",
            };
            text += &format!("{grade:<9}  {}\n", judgement.text);
        }
        for sentence in own.pooled.iter().chain(&own.difference) {
            text += &format!("note       {sentence}\n");
        }
    }
    text + &format!("\n{}\n", verdicts.conclusion)
}
