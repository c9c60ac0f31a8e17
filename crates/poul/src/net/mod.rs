//! The network engine: a tape of fused matrix operations, one arena of weights, and steps that are the same to the
//! last bit on any number of threads.
//!
//! A network declares its weights in a [`Layout`] and writes its computation down on a [`Tape`], once for training and
//! prediction alike ([`Network`]). A [`Trainer`] moves an ensemble of such networks, `predict` scores rows.
//!
//! ```
//! use poul::Seed;
//! use poul::net::{
//!     Activation, AdamParams, Batch, DenseRows, Init, Layout, Mlp, Tape, Trainer, TrainerParams, predict,
//! };
//!
//! # fn main() -> poul::Result<()> {
//! let features: Vec<f32> = (0..512).map(|i| i as f32 / 256.0 - 1.0).collect();
//! let outcome: Vec<f32> = features.iter().map(|x| x * x).collect();
//! let source = DenseRows::new(&features, 1)?;
//!
//! let mut layout = Layout::builder();
//! let group = layout.group("m");
//! let m = Mlp::new(&mut layout, "m", &[1, 32, 1], Activation::Tanh, Init::Uniform, group);
//! let adam = AdamParams { learning_rate: 1e-2, ..Default::default() }.check()?;
//! let mut trainer = Trainer::new(layout.finish()?, adam, TrainerParams::default(), Seed::new(3407))?;
//!
//! let rows: Vec<u32> = (0..512).collect();
//! let outputs = |tape: &mut Tape<'_>, _: &Batch<'_>| {
//!     let x = tape.features();
//!     m.forward(tape, x)
//! };
//! let loss = |tape: &mut Tape<'_>, batch: &Batch<'_>| {
//!     let prediction = outputs(tape, batch);
//!     let target = tape.column(batch.pick(&outcome));
//!     tape.squared_loss(prediction, target, None, batch.scale())
//! };
//! let first = trainer.step(&source, &rows, &loss)?[0];
//! for _ in 0..300 {
//!     trainer.step(&source, &rows, &loss)?;
//! }
//! let last = trainer.step(&source, &rows, &loss)?[0];
//! assert!(last < 0.1 * first);
//! let predicted = predict(trainer.layout(), trainer.averaged_weights(0), &outputs, &source, 1, 0)?;
//! assert_eq!(predicted.len(), 512);
//! # Ok(())
//! # }
//! ```

mod batch;
mod checkpoint;
mod ensemble;
mod epochs;
mod gradients;
mod kernel;
mod layout;
mod member;
mod mlp;
mod op;
mod optimizer;
mod predict;
mod resume;
mod schedule;
mod sparse;
mod table;
mod tape;
mod tensor;
mod trainer;
mod update;
mod window;
mod workspace;

pub use batch::{Batch, DenseRows, Network, RowSource};
pub(crate) use ensemble::{Ensemble, Fit, Fitted, mean_outputs};
pub use epochs::{Epoch, Trained, train};
pub use kernel::elementwise::Activation;
pub use layout::{Dense, Group, Init, LayerNorm, Layout, LayoutBuilder, Segment, Weight};
pub use mlp::Mlp;
pub use optimizer::{Adam, AdamParams, GroupRule};
pub use predict::predict;
pub(crate) use predict::{BLOCK_ROWS, Block, Columns, Prepared, check_n_rows, filled_rows, sigmoid};
pub use schedule::Schedule;
pub use sparse::SparseRows;
pub use tape::{Tape, Var};
pub use tensor::{Tensor, Tensors};
pub use trainer::{Trainer, TrainerParams};
pub use workspace::Workspace;
