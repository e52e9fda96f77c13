package loom

import (
	"fmt"
	"strings"
	"time"
)

// TemplateLease is CreateInput.LeaseMillis of a request that leaves the lease to
// the template.
const TemplateLease int64 = -1

// longestLease keeps ends of leases within what every clock and client can hold.
const longestLease = 100 * 365 * 24 * time.Hour

// Grant gives the initial lease, in milliseconds and 0 for ever, of a request
// for wanted milliseconds (TemplateLease: the template's own), or the errors of
// the field initialLeaseDuration. A lease above a maximum is refused even where
// an imported template's own initial lease asks for it.
func (l LeaseRule) Grant(wanted int64) (int64, []FieldError) {
	const field = "initialLeaseDuration"
	refuse := func(format string, args ...any) (int64, []FieldError) {
		return 0, []FieldError{{field, fmt.Sprintf(format, args...)}}
	}
	millis := wanted
	if wanted == TemplateLease {
		millis = l.Initial
	}
	switch {
	case millis < 0:
		return refuse("A lease cannot be negative; leave it out for the template's own.")
	case millis > longestLease.Milliseconds():
		return refuse("A lease is at most 100 years. Enter 0 for no expiry.")
	case wanted == 0 && l.Initial > 0:
		return refuse("The template requires an expiry. Enter at most %s.", Duration(l.Initial))
	case l.Initial > 0 && millis > l.Initial:
		return refuse("The template allows an initial lease of at most %s.", Duration(l.Initial))
	case l.Max > 0 && (millis == 0 || millis > l.Max):
		return refuse("The template allows leases of at most %s.", Duration(l.Max))
	}
	return millis, nil
}

// CheckChange returns an Invalid error about the field expireTime unless a
// cluster made at created, now expiring at expires, may have its end moved to
// wanted. The zero time is never, for both. The step limits one call only;
// shortening is always allowed, down to the time of creation.
func (l LeaseRule) CheckChange(status ClusterStatus, created, expires, wanted time.Time) error {
	refuse := func(format string, args ...any) error {
		return InvalidFields([]FieldError{{"expireTime", fmt.Sprintf(format, args...)}})
	}
	switch status {
	case ClusterTerminated:
		return refuse("The cluster is deleted and has no lease.")
	case ClusterPending:
		return refuse("An operation of the cluster is running. Change the expiry when it has ended.")
	}
	longest := time.Duration(l.Max) * time.Millisecond
	step := time.Duration(l.Step) * time.Millisecond
	switch {
	case wanted.IsZero() && l.Max > 0:
		return refuse("The template allows leases of at most %s, so the cluster needs an expiry.", Duration(l.Max))
	case wanted.IsZero():
		return nil
	case wanted.Before(created):
		return refuse("The expiry is before the creation of the cluster. Choose a later time.")
	case wanted.Sub(created) > longestLease:
		return refuse("A lease is at most 100 years. Set no expiry for longer.")
	case l.Max == 0:
		return nil // without a maximum the step is not enforced either
	case wanted.After(created.Add(longest)):
		return refuse("The template allows leases of at most %s, counted from the creation of the cluster.", Duration(l.Max))
	case l.Step > 0 && !expires.IsZero() && wanted.Sub(expires) > step:
		return refuse("One change may extend the lease by at most %s.", Duration(l.Step))
	}
	return nil
}

// LeaseLimits are the bounds of the next change of a lease, for forms.
type LeaseLimits struct {
	// Latest is the zero time when nothing bounds it; then never is allowed too.
	Latest time.Time
	// Rule names what sets Latest: "maximum", "step" or "" for nothing.
	Rule string
	// Step is the longest prolongation of one change, 0 for any.
	Step time.Duration
}

// Limits gives the bounds of a change of the lease of a cluster made at created
// that now expires at expires (zero: never).
func (l LeaseRule) Limits(created, expires time.Time) LeaseLimits {
	var limits LeaseLimits
	if l.Max == 0 {
		return limits
	}
	limits.Latest, limits.Rule = created.Add(time.Duration(l.Max)*time.Millisecond), "maximum"
	limits.Step = time.Duration(l.Step) * time.Millisecond
	if next := expires.Add(limits.Step); l.Step > 0 && !expires.IsZero() && next.Before(limits.Latest) {
		limits.Latest, limits.Rule = next, "step"
	}
	return limits
}

// Duration writes milliseconds for people in at most two units: "8 hours",
// "1 day 12 hours". 0 is "no expiry".
func Duration(millis int64) string {
	if millis == 0 {
		return "no expiry"
	}
	var parts []string
	rest := millis
	for _, u := range []struct {
		word   string
		millis int64
	}{{"day", 86_400_000}, {"hour", 3_600_000}, {"minute", 60_000}, {"second", 1000}, {"millisecond", 1}} {
		n := rest / u.millis
		rest %= u.millis
		if n == 0 {
			if len(parts) > 0 {
				break
			}
			continue
		}
		word := u.word
		if n != 1 {
			word += "s"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, word))
		if len(parts) == 2 {
			break
		}
	}
	return strings.Join(parts, " ")
}
