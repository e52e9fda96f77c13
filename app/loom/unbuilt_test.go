package loom_test

import (
	"slices"
	"strings"
	"testing"

	"loom/app/loom"
)

// Every verb either works, with or without a preview, or says what is missing.
func TestEveryVerbWorksOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	atOnce := []loom.ClusterVerb{loom.VerbLease, loom.VerbEdit, loom.VerbAbort, loom.VerbPause, loom.VerbResume}
	for _, verb := range append(slices.Clone(loom.ClusterVerbs), loom.VerbSkip) {
		works := slices.Contains(atOnce, verb) || slices.Contains(loom.PreviewKinds, loom.PreviewKind(verb))
		why := verb.Unbuilt()
		if works != (why == "") {
			t.Errorf("%s works: %v, and yet %q", verb, works, why)
		}
		if why != "" && (!strings.HasPrefix(why, "Loom cannot") || !strings.HasSuffix(why, ".") || !strings.Contains(why, ";")) {
			t.Errorf("%s: %q does not say what to do instead", verb, why)
		}
	}
	for _, kind := range loom.PreviewKinds {
		if kind != loom.PreviewCreate && !slices.Contains(loom.ClusterVerbs, kind.Verb()) {
			t.Errorf("%s is no verb", kind)
		}
	}
}

// A cluster that somebody wants deleted begins nothing else.
func TestWhyNotLooksAtTheWishToDelete(t *testing.T) {
	t.Parallel()
	for verb, allowed := range map[loom.ClusterVerb]bool{
		loom.VerbConfigure: false, loom.VerbStop: false, loom.VerbSync: false, loom.VerbDelete: true, loom.VerbEdit: true, loom.VerbLease: true,
	} {
		c := loom.Cluster{Status: loom.ClusterActive, DeleteWanted: "ana"}
		if why := c.WhyNot(verb, nil); allowed != (why == "") || !allowed && !strings.Contains(why, "ana") {
			t.Errorf("%s: %q", verb, why)
		}
	}
	pending := loom.Cluster{Status: loom.ClusterPending, DeleteWanted: "ana"}
	if why := pending.WhyNot(loom.VerbAbort, &loom.Operation{Status: loom.OperationRunning}); why != "" {
		t.Errorf("abort: %q", why)
	}
}
