package cli

import "loom/app/wiring"

// environment is what all subcommands share, with the methods of single ones.
type environment struct{ *wiring.Environment }
