package lab_test

import (
	"os"
	"testing"

	"loom/app/cli"
	"loom/app/testkit"
	"loom/provisioner/confine"
	"loom/provisioner/provider/local"
)

func TestMain(m *testing.M) {
	// The processes of a soak, and the first process of a machine, are this program too.
	if len(os.Args) > 1 && (os.Args[1] == local.StageCommand || os.Args[1] == confine.Command) || os.Getenv("LOOM_TEST_ACT_AS_LOOM") != "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	testkit.SideBySide(3)
	testkit.Main(m)
}
