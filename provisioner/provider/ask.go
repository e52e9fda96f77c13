package provider

import (
	"context"

	"loom/app/loom"
)

// Prober is a Provider that can say whether it works as it is set up, and which
// sizes and images it offers. It makes and changes nothing.
//
// What is wrong is said in the checks, with the remedy; an error is only for
// trouble of the provisioner itself, and for a ctx that ended.
type Prober interface {
	Probe(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error)
}

// Verifier is a Prober that can look up one size or image, call.Ask, also where its
// probe does not list all there are. The answer is a probe with one check, or with
// the one that failed before; the error errors.ErrUnsupported sends the caller to the list.
type Verifier interface {
	Verify(ctx context.Context, call *loom.ProviderCall) (loom.Probe, error)
}

// Lister is a Provider that can list the machines with Loom's labels, of all
// clusters and tenants that it finds, without judging whose they are. An
// incomplete list must be an error: what is missing from it counts as gone. A machine that
// is there but cannot be asked whose it is is listed without node and key.
type Lister interface {
	List(ctx context.Context, call *loom.ProviderCall) ([]loom.TaggedMachine, error)
}
