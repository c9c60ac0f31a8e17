//! Weights of contexts and exposure logs, in CSV and Parquet.

use std::path::{Path, PathBuf};

use poul::policy::{ContextWeights, exposure_weights};

use super::Target;
use crate::corpus;
use crate::execution::{Ended, judged, promised};
use crate::mutate;
use crate::random::Random;

pub(crate) fn open(folder: &Path) -> Result<Box<dyn Target>, String> {
    let texts = [
        "context,weight\npeak,3\noff_peak,1\n",
        "context,count\npeak,3\npeak,4\n",
        "context\npeak\noff_peak\n",
    ];
    Ok(Box::new(Weights { path: folder.join("weights.csv"), texts }))
}

struct Weights {
    path: PathBuf,
    texts: [&'static str; 3],
}

impl Target for Weights {
    fn generate(&mut self, random: &mut Random) -> Vec<u8> {
        let text = *random.pick(&self.texts);
        if random.once_in(2) {
            return mutate::csv(random, text).into_bytes();
        }
        let mut input = text.as_bytes().to_vec();
        let other = random.pick(&self.texts).as_bytes();
        mutate::bytes(random, &mut input, other);
        input
    }

    fn run(&mut self, input: &[u8]) -> Result<Ended, String> {
        std::fs::write(&self.path, input).map_err(|error| error.to_string())?;
        judged(exposure_weights(&self.path, Some("context")))?;
        let Some(weights) = judged(ContextWeights::read(&self.path))? else { return Ok(Ended::Refused) };
        let map = weights.to_map();
        promised(map.values().all(|weight| weight.is_finite() && *weight >= 0.0), || {
            format!("weights {map:?}")
        })?;
        let policies = poul::policy::PolicySet::from_csv(
            corpus::LONG_POLICIES.as_bytes(),
            Path::new("p.csv"),
            Some(&weights),
        );
        match judged(policies)? {
            None => Ok(Ended::Refused),
            Some(policies) => super::policy::use_them(&policies).map(|()| Ended::Accepted),
        }
    }
}
