package cli

import (
	"io"
	"log/slog"
	"os"
	"testing"

	"loom/app/config"
	"loom/app/testkit"
	"loom/app/wiring"
	"loom/provisioner/confine"
	"loom/provisioner/provider/local"
)

// actAsLoom makes the test program be loom, with its arguments as loom's: the
// tests start it again for each process that they want to kill.
const actAsLoom = "LOOM_TEST_ACT_AS_LOOM"

// sideBySide is how many tests run at once where the command line says nothing, whatever
// the processors: more of them, each with processes and machines of its own, take longer in
// all than two at a time.
const sideBySide = 2

func TestMain(m *testing.M) {
	// The first process of a machine is this program too, whoever started it.
	if len(os.Args) > 1 && (os.Args[1] == local.StageCommand || os.Args[1] == confine.Command) || os.Getenv(actAsLoom) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	testkit.SideBySide(sideBySide)
	testkit.Main(m)
}

// quietEnvironment is one of options whose log and output nobody reads.
func quietEnvironment(t *testing.T, options ...string) *wiring.Environment {
	t.Helper()
	values, err := config.Load(nil, options)
	if err != nil {
		t.Fatal(err)
	}
	return &wiring.Environment{Values: values, Log: slog.New(slog.DiscardHandler), Out: io.Discard, ErrOut: io.Discard}
}
