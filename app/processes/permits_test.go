package processes_test

import (
	"net/netip"
	"strings"
	"testing"

	"loom/app/loom"
)

// TestProbesKeepToThePermits: a provider that the tenant may not use is not asked, and the
// answer names the remedy; one that it may reaches what the tenant does at the moment.
func TestProbesKeepToThePermits(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	c := &cloud{probe: loom.Probe{OK: true}}
	a.serve(c)
	a.exec(`UPDATE tenants SET provider_types_off = '{lab}'`)
	got, err := a.Probe(a.ctx, a.admin, "lab")
	a.must(err)
	if got.OK || len(got.Checks) != 1 || !strings.Contains(got.Checks[0].Message, "ask the superadmin") || len(c.calls) != 0 {
		t.Errorf("switched off: %+v after %d calls", got, len(c.calls))
	}
	a.exec(`UPDATE tenants SET provider_types_off = '{}'`)
	for _, on := range []bool{true, false} {
		a.exec(`UPDATE tenants SET private_networks = $1`, on)
		got, err := a.Probe(a.ctx, a.admin, "lab")
		a.must(err)
		reach := c.calls[len(c.calls)-1].Reach
		if !got.OK || reach.May(netip.MustParseAddr("10.0.0.1")) != on || reach.May(netip.MustParseAddr("127.0.0.1")) {
			t.Errorf("private networks %t: %+v, reach %s", on, got, reach.Key())
		}
	}
}
