package processes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// UsageInput asks for the use of nodes; empty fields do not filter. Start and End
// are seconds since 1970, nil for the first use and for now.
type UsageInput struct {
	// Tenant is an id or a name.
	Tenant     string
	User       loom.UserID
	Cluster    loom.ClusterID
	Template   string
	Start, End *int64
	// GroupBy is "" for one interval, hour, day, week, month or year; TimeUnit one of
	// TimeUnits in any case, "" for seconds; Split "" or one of UsageSplits.
	GroupBy, TimeUnit, Split string
}

// Usage is the use of nodes between Start and End, seconds since 1970.
type Usage struct {
	Start, End int64
	Items      []UsageItem
}

// UsageItem is the use in the interval that begins at Time: the summed time of
// nodes in the unit asked for, a whole number in decimal.
type UsageItem struct {
	Time         int64
	Value, Split string
}

// Words of usage.
var (
	UsageGroups = []string{"hour", "day", "week", "month", "year"}
	TimeUnits   = []string{"nanoseconds", "microseconds", "milliseconds", "seconds", "minutes", "hours", "days"}
	UsageSplits = []string{"user", "clustertemplate", "cluster", "hardwaretype", "provider"}
)

// periods in seconds: a month has 30 days, a year 360.
var periods = map[string]int64{"hour": 3600, "day": 86_400, "week": 7 * 86_400, "month": 30 * 86_400, "year": 360 * 86_400}

// units as seconds * times / per.
var units = map[string]struct{ times, per int64 }{
	"nanoseconds": {1e9, 1}, "microseconds": {1e6, 1}, "milliseconds": {1000, 1},
	"": {1, 1}, "seconds": {1, 1}, "minutes": {1, 60}, "hours": {1, 3600}, "days": {1, 86_400},
}

const (
	// maxIntervals and maxUsageItems bound an answer.
	maxIntervals  = 10_000
	maxUsageItems = 100_000
	// maxSecond is the end of the year 9999.
	maxSecond = 253_402_300_799
)

func (in *UsageInput) check() error {
	var errs []loom.FieldError
	oneOf := func(field, value string, valid []string) {
		if value != "" && !slices.Contains(valid, value) {
			errs = append(errs, loom.FieldError{Field: field, Message: fmt.Sprintf("“%.40s” is none of %s.", value, strings.Join(valid, ", "))})
		}
	}
	in.TimeUnit = strings.ToLower(in.TimeUnit)
	oneOf("groupby", in.GroupBy, UsageGroups)
	oneOf("timeunit", in.TimeUnit, TimeUnits)
	oneOf("split", in.Split, UsageSplits)
	for field, second := range map[string]*int64{"start": in.Start, "end": in.End} {
		if second != nil && (*second < 0 || *second > maxSecond) {
			errs = append(errs, loom.FieldError{Field: field, Message: "This is a time in seconds since 1970, from 0 up."})
		}
	}
	return loom.InvalidFields(errs)
}

// Usage sums up for how long nodes were used: from the completion of CREATE to that
// of DELETE, or until now. Superadmins see all tenants, administrators their own,
// others themselves; Forbidden for more than that. Invalid for words and times that
// make no sense.
func (f *Processes) Usage(ctx context.Context, actor loom.Actor, in UsageInput) (Usage, error) {
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return Usage{}, err
	}
	filter, err := f.usageFilter(ctx, actor, in)
	if err != nil {
		return Usage{}, err
	}
	if err := in.check(); err != nil {
		return Usage{}, err
	}
	first, any, now, err := store.FirstUseAllTenants(ctx, f.db, filter)
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Start: first, End: now}
	if in.End != nil {
		u.End = *in.End
	}
	if in.Start != nil {
		u.Start = *in.Start
	}
	if u.Start > u.End {
		if in.Start != nil {
			return Usage{}, loom.InvalidFields([]loom.FieldError{{Field: "start", Message: fmt.Sprintf("The start, %d, is after the end, %d.", u.Start, u.End)}})
		}
		u.Start = u.End // nothing was used as early as that
	}
	if !any || u.Start == u.End {
		u.Items = []UsageItem{{Time: u.Start, Value: "0"}}
		return u, nil
	}
	marks, err := intervals(u.Start, u.End, periods[in.GroupBy])
	if err != nil {
		return Usage{}, err
	}
	unit := units[in.TimeUnit]
	used, err := store.UsedTimeAllTenants(ctx, f.db, filter, in.Split, marks, unit.times, unit.per, maxUsageItems+1)
	if err != nil {
		return Usage{}, err
	}
	if len(used) > maxUsageItems {
		return Usage{}, loom.InvalidFields([]loom.FieldError{{Field: "split", Message: fmt.Sprintf(
			"This would be more than %d values; narrow start and end, filter, or group by longer periods.", maxUsageItems)}})
	}
	for _, v := range used {
		u.Items = append(u.Items, UsageItem{Time: marks[v.Interval], Value: v.Value, Split: v.Split})
	}
	if len(used) == 0 {
		for _, at := range marks[:len(marks)-1] {
			u.Items = append(u.Items, UsageItem{Time: at, Value: "0"})
		}
	}
	return u, nil
}

// usageFilter narrows to what the actor may see.
func (f *Processes) usageFilter(ctx context.Context, actor loom.Actor, in UsageInput) (store.UsageFilter, error) {
	filter := store.UsageFilter{Tenant: actor.Tenant, User: in.User, Cluster: in.Cluster, Template: in.Template}
	if actor.May(loom.Install.Reading(), loom.Installation) == nil {
		filter.Tenant = loom.TenantID(in.Tenant)
		if in.Tenant == "" {
			return filter, nil
		}
		// What is no name may be the id of a tenant, also of one that was deleted.
		tenant, err := store.TenantByNameAllTenants(ctx, f.db, in.Tenant)
		if err == nil {
			filter.Tenant = tenant.ID
		} else if !errors.Is(err, loom.NotFound) {
			return filter, err
		}
		return filter, nil
	}
	if in.Tenant != "" && in.Tenant != string(actor.Tenant) && in.Tenant != actor.TenantName {
		return filter, loom.NewError(loom.Forbidden, "Only a superadmin sees the usage of other tenants; leave “tenant” out for your own.")
	}
	if viewer := store.SeenBy(actor); !viewer.SeesAll() {
		if in.User != "" && in.User != viewer.User {
			return filter, loom.NewError(loom.Forbidden, "Only an administrator sees the usage of others; leave “user” out for your own.")
		}
		filter.User = viewer.User
	}
	return filter, nil
}

// intervals returns the marks between which usage is summed up: start, the multiples
// of the period since 1970 behind it, and end. Periods are fixed numbers of seconds,
// so no zone and no daylight saving time matters.
func intervals(start, end, period int64) ([]int64, error) {
	marks := []int64{start}
	if period > 0 {
		next := (start/period + 1) * period
		if n := (end - next) / period; n >= maxIntervals {
			return nil, loom.InvalidFields([]loom.FieldError{{Field: "groupby", Message: fmt.Sprintf(
				"From %s to %s are more than %d intervals; narrow start and end, or group by longer periods.",
				time.Unix(start, 0).UTC().Format(time.DateOnly), time.Unix(end, 0).UTC().Format(time.DateOnly), maxIntervals)}})
		}
		for ; next < end; next += period {
			marks = append(marks, next)
		}
	}
	return append(marks, end), nil
}
