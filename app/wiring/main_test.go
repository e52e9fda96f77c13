package wiring

import (
	"os"
	"testing"

	"loom/app/testkit"
	"loom/provisioner"
	"loom/provisioner/confine"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Command {
		os.Exit(provisioner.Confined(os.Args[2:]))
	}
	testkit.Main(m)
}
