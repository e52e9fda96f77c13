package loom

import (
	"cmp"
	"fmt"
	"slices"
)

// Bounds of settings.
const (
	maxReminders  = 10
	maxLeaseHours = 8760 // a year
	maxTokenDays  = 36500

	maxRepairsPerDay = 1000
)

// Settings are what a tenant's administrators decide for all of it. The JSON is what is stored and shown.
type Settings struct {
	// LeaseReminderHours says how long before the end of a lease its owner is
	// reminded; the longest first.
	LeaseReminderHours []int `json:"leaseReminderHours" items:"{\"minimum\":1,\"maximum\":8760}"`
	// LeaseGraceHours is how long machines stay, stopped, after the lease.
	LeaseGraceHours int `json:"leaseGraceHours" minimum:"0" maximum:"8760"`
	// MaxTokenDays is the longest life of a token; nil lets tokens live for ever.
	MaxTokenDays *int `json:"maxTokenDays" description:"null: no maximum." nullable:"true"`
	// RequireLease refuses clusters that would live for ever.
	RequireLease bool `json:"requireLease" description:"Every cluster needs an expiry."`
	// AutomaticRepairs lets Loom repair by itself where a policy says so; that of the superadmin
	// tenant holds for all.
	AutomaticRepairs bool `json:"automaticRepairs" description:"Loom repairs by itself what the repair policies of clusters let it."`
	// RepairsPerDay is how many repairs Loom begins by itself in 24 hours.
	RepairsPerDay int `json:"repairsPerDay" minimum:"0" maximum:"1000" description:"How many repairs Loom begins by itself in 24 hours."`
	// LocalSignIn says who signs in with a password: LocalEveryone or LocalBuiltin.
	LocalSignIn string `json:"localSignIn" enum:"everyone,builtin" description:"Who signs in with a password: everyone, or the built-in administrator alone."`
}

// Who signs in with a password: all who have one, or the built-in administrator alone.
const (
	LocalEveryone = "everyone"
	LocalBuiltin  = "builtin"
)

// DefaultSettings are those of a tenant that never set any.
func DefaultSettings() Settings {
	days := 365
	return Settings{LeaseReminderHours: []int{24, 1}, MaxTokenDays: &days, AutomaticRepairs: true, RepairsPerDay: 20, LocalSignIn: LocalEveryone}
}

// Normalize puts the reminders in order, the longest first, each once, and gives
// the errors of fields that are out of bounds.
func (s *Settings) Normalize() []FieldError {
	var errs []FieldError
	for i, hours := range s.LeaseReminderHours {
		if hours < 1 || hours > maxLeaseHours {
			errs = append(errs, FieldError{fmt.Sprintf("leaseReminderHours[%d]", i), fmt.Sprintf("%d is no number of hours from 1 to %d.", hours, maxLeaseHours)})
		}
	}
	s.LeaseReminderHours = slices.Clone(s.LeaseReminderHours)
	slices.Sort(s.LeaseReminderHours)
	s.LeaseReminderHours = slices.Compact(s.LeaseReminderHours)
	slices.Reverse(s.LeaseReminderHours)
	if s.LeaseReminderHours == nil {
		s.LeaseReminderHours = []int{}
	}
	if len(s.LeaseReminderHours) > maxReminders {
		errs = append(errs, FieldError{"leaseReminderHours", fmt.Sprintf("At most %d reminders are sent.", maxReminders)})
	}
	if s.LeaseGraceHours < 0 || s.LeaseGraceHours > maxLeaseHours {
		errs = append(errs, FieldError{"leaseGraceHours", fmt.Sprintf("%d is no number of hours from 0 to %d.", s.LeaseGraceHours, maxLeaseHours)})
	}
	if d := s.MaxTokenDays; d != nil && (*d < 1 || *d > maxTokenDays) {
		errs = append(errs, FieldError{"maxTokenDays", fmt.Sprintf("%d is not between 1 and %d days. null sets no maximum.", *d, maxTokenDays)})
	}
	if s.RepairsPerDay < 0 || s.RepairsPerDay > maxRepairsPerDay {
		errs = append(errs, FieldError{"repairsPerDay", fmt.Sprintf("%d is no number of repairs from 0 to %d.", s.RepairsPerDay, maxRepairsPerDay)})
	}
	s.LocalSignIn = cmp.Or(s.LocalSignIn, LocalEveryone)
	if s.LocalSignIn != LocalEveryone && s.LocalSignIn != LocalBuiltin {
		errs = append(errs, FieldError{"localSignIn", "Choose “everyone” or “builtin”."})
	}
	return errs
}

// CheckLease gives the error of a field that would leave a cluster without an end
// where the settings require one.
func (s Settings) CheckLease(field string, forEver bool) []FieldError {
	if !s.RequireLease || !forEver {
		return nil
	}
	return []FieldError{{field, "This tenant requires an expiry. Enter one."}}
}
