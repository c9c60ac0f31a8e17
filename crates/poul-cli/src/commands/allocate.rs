//! `poul allocate`: which policy each user should have, under budgets and other limits.

mod specs;
mod summary;
mod worth;

use poul::AtomicFile;
use poul::data::Source;
use poul::decide::users::{
    Allocated, AllocationInputs, AllocationRequest, Prices, Target, allocate, allocate_by_prices, write_curve,
};
use poul::model::Model;
use poul::{Error, Result};

use self::specs::{amounts, eligible};
use self::summary::summary;
pub(crate) use self::worth::worth_summary;
use crate::args::{Allocate, Common};
use crate::commands::{JsonTarget, effect};
use crate::progress::Terminal;
use crate::settings::budget;
use poul_report::ReportTarget;
use poul_report::number::count;

pub(crate) fn run(args: &Allocate, common: &Common, terminal: &Terminal) -> Result<()> {
    let request = request(args, common)?;
    let frozen = match (&args.maximize, &args.prices) {
        (None, Some(path)) => Some(Prices::load(path)?),
        (None, None) => {
            return Err(Error::usage("what is to be maximised?")
                .hint("name an outcome, --maximize gmv, or prices that were found before: --prices FILE"));
        }
        (Some(_), _) => None,
    };
    let model = Model::load(&args.model)?;
    let users = Source::open_path(&args.users)?;
    let (policies, _) = effect::policies(&model, &args.policy_files)?;
    let group_budgets = args.group_budgets.as_ref().map(Source::open_path).transpose()?;
    let inputs = AllocationInputs {
        model: &model,
        policies: &policies,
        users: &users,
        group_budgets: group_budgets.as_ref(),
    };
    let json =
        JsonTarget::open_beside(args.json.as_deref(), &[args.report.as_deref(), args.prices.as_deref()])?;
    let page = ReportTarget::open(args.report.as_deref())?;
    let target = Target::File(&args.out);
    let Allocated { allocation, .. } = match frozen {
        Some(prices) => {
            if args.curve.is_some() || group_budgets.is_some() {
                return Err(Error::usage(
                    "prices decide alone: --curve and --group-budgets have no place beside them",
                )
                .hint("leave them out, or find new prices: --maximize OUTCOME"));
            }
            allocate_by_prices(&inputs, &prices, &request, target, terminal)?
        }
        None => {
            let request = request.check()?;
            let prices = args.prices.as_ref().map(AtomicFile::create).transpose()?;
            if let Some(curve) = &args.curve {
                // What cannot be written is told before the work.
                drop(AtomicFile::create(curve)?);
            }
            let has_curve = args.curve.is_some() || (args.report.is_some() && !args.budget.is_empty());
            let found = allocate(&inputs, &request, has_curve, target, terminal)?;
            if let Some(curve) = &args.curve {
                write_curve(curve, &found.allocation.curve)?;
            }
            if let Some(file) = prices {
                found.prices.write(file)?;
            }
            found
        }
    };
    terminal.say(format!("{} users in {}", count(allocation.users), args.out.display()));
    page.write(|| poul_report::of_allocation(&allocation))?;
    json.write(&allocation, || summary(&allocation))
}

fn request(args: &Allocate, common: &Common) -> Result<AllocationRequest> {
    Ok(AllocationRequest {
        maximize: args.maximize.clone().unwrap_or_default(),
        budget: amounts(&args.budget, "--budget", "OUTCOME=AMOUNT")?,
        rate: amounts(&args.rate, "--rate", "COST/VALUE=RATE")?,
        cap: amounts(&args.cap, "--cap", "POLICY=SHARE")?,
        floor: amounts(&args.floor, "--floor", "POLICY=SHARE")?,
        eligible: eligible(&args.eligible)?,
        group: args.group.clone(),
        at_most_policies: args.at_most_policies,
        risk: args.risk,
        policy: args.policy.clone(),
        control: args.control.clone(),
        allow_unseen: args.allow_unseen,
        population: args.population.clone(),
        id: args.id.clone(),
        level: args.level,
        points: args.points,
        force: args.force,
        worth: true,
        seed: common.seed,
        memory: budget(common)?,
    })
}
