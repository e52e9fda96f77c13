package account_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"loom/app/account"
	"loom/app/loom"
)

// TestUnknownNamesCostAsMuch: a sign-in with a name or tenant that is not there computes
// a hash as one with a wrong password does, so that its time tells nothing. A hash takes
// 64 MiB, which shows without a clock.
func TestUnknownNamesCostAsMuch(t *testing.T) { //nolint:paralleltest // others must not allocate meanwhile
	b := setup(t)
	const hash = 64 << 20
	for i, in := range []account.SignInInput{
		{Tenant: "demo", User: "user"}, {Tenant: "demo", User: "nobody-here"}, {Tenant: "nowhere", User: "user"},
	} {
		in.Password, in.Address = loom.NewSecret("a wrong password"), fmt.Sprintf("192.0.2.%d", i)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, _, err := b.SignIn(b.ctx, in)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, loom.Unauthenticated) {
			t.Errorf("%s/%s: %v", in.Tenant, in.User, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used < hash || used >= 2*hash {
			t.Errorf("%s/%s used %d MiB, and one hash takes 64", in.Tenant, in.User, used>>20)
		}
	}
}
