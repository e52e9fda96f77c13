package processes_test

import (
	"errors"
	"strings"
	"testing"

	"loom/app/loom"
)

// The question reaches the provisioner with the provider's secrets, and the answer stays
// for the pages, apart from that of the provider's test.
func TestVerify(t *testing.T) {
	t.Parallel()
	a := newAsked(t)
	c := &cloud{}
	c.probe.OK = true
	c.probe.Check("flavor", true, "The provider has it: Small.")
	a.serve(c)
	offer := loom.Offer{Kind: loom.OfferFlavor, ID: "m1.small"}
	got, err := a.Verify(a.ctx, a.admin, "lab", offer)
	a.must(err)
	if !got.OK || got.Checks[0].Message != "The provider has it: Small." || got.Time.IsZero() {
		t.Errorf("the answer is %+v", got)
	}
	if len(c.calls) != 1 || c.calls[0].Ask != offer || c.calls[0].Provider.Fields["pin"] != pin {
		t.Errorf("the provisioner was asked %+v", c.calls)
	}
	c.probe = loom.FailedProbe("flavor", "There is none.")
	_, err = a.Verify(a.ctx, a.admin, "lab", loom.Offer{Kind: loom.OfferFlavor, ID: "m1.huge"})
	a.must(err)
	sizes, err := a.Verified(a.ctx, a.admin, loom.OfferFlavor)
	a.must(err)
	if len(sizes["lab"]) != 2 || !sizes["lab"]["m1.small"].OK || sizes["lab"]["m1.huge"].OK {
		t.Errorf("kept are %+v", sizes)
	}
	images, err := a.Verified(a.ctx, a.admin, loom.OfferImage)
	a.must(err)
	if len(images) != 0 {
		t.Errorf("of images are kept %+v", images)
	}
	if _, err := a.LastProbe(a.ctx, a.admin, "lab"); !errors.Is(err, loom.NotFound) {
		t.Errorf("a look-up counts as a test of the provider: %v", err)
	}
	if n := a.count(`SELECT count(*) FROM audit WHERE verb = 'verify' AND object = 'lab' AND after->>'id' LIKE 'm1.%'`); n != 2 {
		t.Errorf("%d entries in the audit", n)
	}
	foreign := a.admin
	foreign.Tenant, foreign.TenantName = "t2", "other"
	if _, err := a.Verify(a.ctx, foreign, "lab", offer); !errors.Is(err, loom.NotFound) {
		t.Errorf("for another tenant: %v", err)
	}
	if found, err := a.Verified(a.ctx, foreign, loom.OfferFlavor); err != nil || len(found) != 0 {
		t.Errorf("another tenant sees %+v, %v", found, err)
	}
	user := a.admin
	user.Role = loom.RoleUser
	if _, err := a.Verify(a.ctx, user, "lab", offer); !errors.Is(err, loom.Forbidden) {
		t.Errorf("for a user: %v", err)
	}
	for _, bad := range []loom.Offer{{Kind: "disk", ID: "x"}, {Kind: loom.OfferImage}, {Kind: loom.OfferImage, ID: " "}, {Kind: loom.OfferImage, ID: "a\x00"},
		{Kind: loom.OfferImage, ID: "\xff"}, {Kind: loom.OfferImage, ID: strings.Repeat("x", 1001)}} {
		if _, err := a.Verify(a.ctx, a.admin, "lab", bad); !errors.Is(err, loom.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
