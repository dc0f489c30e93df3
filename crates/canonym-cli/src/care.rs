//! `canonym backup` and `canonym doctor`: maintenance of the data folder of `canonym serve`.

use std::path::PathBuf;

use anyhow::Context;
use canonym_neural::status::Stage;
use canonym_serve::maintenance::{self, Help};

use crate::{output, progress};

/// Arguments of `canonym backup`.
#[derive(Debug, clap::Args)]
pub struct BackupArguments {
    /// Data folder of the projects; a server may be using it.
    #[arg(long, value_name = "DIR", default_value = "canonym-data")]
    data: PathBuf,
    /// Folder to write; must be new or empty. `canonym serve --data` accepts it as is.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs `canonym backup`.
pub fn backup(arguments: &BackupArguments) -> anyhow::Result<()> {
    let stage = Stage::start();
    let n_models = maintenance::backup(&arguments.data, &arguments.out).context("backup failed")?;
    let models = output::counted(n_models as u64, "trained model");
    stage.done("copied the database and the models");
    progress::say(&format!(
        "backed up {} to {}, including {models}",
        arguments.data.display(),
        arguments.out.display()
    ));
    Ok(())
}

/// Arguments of `canonym doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArguments {
    /// Data folder of the projects; no server may be using it.
    #[arg(long, value_name = "DIR", default_value = "canonym-data")]
    data: PathBuf,
    /// Repair permissions and derived tables; remove orphaned models and incomplete files.
    #[arg(long)]
    repair: bool,
}

/// Runs `canonym doctor`: one line per finding; fails if faults are left.
pub fn examine(arguments: &DoctorArguments) -> anyhow::Result<()> {
    let stage = Stage::start();
    let findings = maintenance::examine(&arguments.data, arguments.repair).context("cannot check the data folder")?;
    stage.done("checked the data folder");
    for finding in &findings {
        let word = match finding.help {
            Help::Repaired => "repaired",
            Help::Repair => "fault",
            Help::Restore => "damage",
            Help::Skipped => "note",
        };
        output::print(&format!("{word}\t{}\n", finding.what))?;
    }
    let left = findings.iter().filter(|finding| matches!(finding.help, Help::Repair | Help::Restore)).count();
    let data = arguments.data.display();
    if left == 0 {
        let n_skipped = findings.iter().filter(|finding| finding.help == Help::Skipped).count();
        progress::say(&match n_skipped {
            0 => format!("no problems found in {data}"),
            n => format!(
                "no problems found in what was checked in {data}; {} skipped",
                output::counted(n as u64, "check")
            ),
        });
        return Ok(());
    }
    let hint = match findings.iter().any(|finding| finding.help == Help::Restore) {
        true => "restore a backup made with `canonym backup`; `--repair` fixes the rest".to_owned(),
        false => format!("run `canonym doctor --data {} --repair`", maintenance::quoted(&arguments.data)),
    };
    let message = format!("{data} has {}", output::counted(left as u64, "fault"));
    Err(canonym_core::Error::invalid(message).with_hint(hint).into())
}
