// Command loom is Loom: pages, REST API, scheduler and provisioner in one
// binary. See app/cli for its subcommands.
package main

import (
	"os"

	"loom/app/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
