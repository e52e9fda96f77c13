package processes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/store"
)

// ReportInput asks for the use of nodes as pages show it. Empty filters do not
// filter.
type ReportInput struct {
	// Own limits to what the actor's own clusters used; All is over all tenants, or
	// the one named Tenant, for superadmins. Without either it is the actor's tenant.
	Own, All bool
	Tenant   string
	User     loom.UserID
	Template string
	// Start and End bound the time; an End in the future counts as now.
	Start, End time.Time
	// Zone is whose calendar counts; nil is UTC.
	Zone *time.Location
	// GroupBy is hour, day, week or month of the calendar; weeks begin on Mondays. Split is one of ReportSplits, or "tenant" with All.
	GroupBy, Split string
}

// Report is the use of nodes, in hours.
type Report struct {
	Start, End time.Time
	// Marks bound the intervals: one more than there are of those.
	Marks []time.Time
	// Hours are those of each interval, Total all, Before those of as long a time
	// right before Start.
	Hours         []float64
	Total, Before float64
	// Splits are what the total is made of, the greatest first. Parts counts them
	// all; Hours by interval are only there for the first ReportSeries.
	Splits []ReportSplit
	Parts  int
}

// ReportSplit is a part of the use.
type ReportSplit struct {
	Name  string
	Total float64
	Hours []float64
}

// Words of reports.
var (
	ReportGroups = []string{"hour", "day", "week", "month"}
	ReportSplits = []string{"user", "clustertemplate", "cluster", "hardwaretype", "provider"}
)

const (
	// ReportSeries is how many parts are told by interval.
	ReportSeries = 5
	// maxReportIntervals bounds a picture, maxReportSplits the parts that are listed.
	maxReportIntervals = 200
	maxReportSplits    = 200
	// maxReportCells bounds what is read to tell parts by interval.
	maxReportCells = 50_000
)

// Report sums up the use of nodes between two times, by calendar intervals and by
// parts, and compares it with the time before. Errors: Forbidden for more than one's
// own without the role, Invalid for words and times that make no sense.
func (f *Processes) Report(ctx context.Context, actor loom.Actor, in ReportInput) (Report, error) {
	filter, err := f.reportFilter(ctx, actor, in)
	if err != nil {
		return Report{}, err
	}
	_, _, second, err := store.FirstUseAllTenants(ctx, f.db, store.UsageFilter{Tenant: "-"})
	if err != nil {
		return Report{}, err
	}
	now := time.Unix(second, 0).UTC()
	if in.End.After(now) {
		in.End = now
	}
	if err := in.check(); err != nil {
		return Report{}, err
	}
	zone := cmp.Or(in.Zone, time.UTC)
	r := Report{Start: in.Start.In(zone).Truncate(time.Second), End: in.End.In(zone).Truncate(time.Second)}
	if r.Marks, err = calendar(r.Start, r.End, in.GroupBy); err != nil {
		return Report{}, err
	}
	if err := f.reportTotals(ctx, filter, in.Split, &r); err != nil {
		return Report{}, err
	}
	return r, f.reportIntervals(ctx, filter, in.Split, &r)
}

func (f *Processes) reportFilter(ctx context.Context, actor loom.Actor, in ReportInput) (store.UsageFilter, error) {
	none := store.UsageFilter{}
	if err := actor.May(loom.Read, actor.InTenant()); err != nil {
		return none, err
	}
	asked := UsageInput{Tenant: string(actor.Tenant), User: in.User, Template: in.Template}
	switch {
	case in.All:
		if err := actor.May(loom.Install.Reading(), loom.Installation); err != nil {
			return none, err
		}
		asked.Tenant = in.Tenant
	case in.Own:
		asked.User = actor.User
	default:
		if err := actor.May(loom.Administer.Reading(), actor.InTenant()); err != nil {
			return none, err
		}
	}
	return f.usageFilter(ctx, actor, asked)
}

func (in ReportInput) check() error {
	var errs []loom.FieldError
	if !slices.Contains(ReportGroups, in.GroupBy) {
		errs = append(errs, loom.FieldError{Field: "group", Message: fmt.Sprintf("“%.40s” is none of %s.", in.GroupBy, strings.Join(ReportGroups, ", "))})
	}
	if !slices.Contains(ReportSplits, in.Split) && (in.Split != "tenant" || !in.All) {
		errs = append(errs, loom.FieldError{Field: "split", Message: fmt.Sprintf("“%.40s” is none of %s.", in.Split, strings.Join(ReportSplits, ", "))})
	}
	switch {
	case in.Start.Unix() < 0 || in.Start.Unix() > maxSecond:
		errs = append(errs, loom.FieldError{Field: "from", Message: "The first day is between 1970 and the year 9999."})
	case !in.Start.Before(in.End):
		errs = append(errs, loom.FieldError{Field: "from", Message: "The first day is after the last, or has not come yet."})
	}
	return loom.InvalidFields(errs)
}

// calendar returns the marks between which usage is summed up.
func calendar(start, end time.Time, group string) ([]time.Time, error) {
	marks := []time.Time{start}
	for at := NextOf(start, group); at.Before(end); at = NextOf(at, group) {
		if marks = append(marks, at); len(marks) > maxReportIntervals {
			return nil, loom.InvalidFields([]loom.FieldError{{Field: "group", Message: fmt.Sprintf(
				"That would be more than %d bars; choose a longer period, or fewer days.", maxReportIntervals)}})
		}
	}
	return append(marks, end), nil
}

// NextOf returns the beginning of the hour, day, week or month after a time, by the
// calendar of its zone.
func NextOf(at time.Time, group string) time.Time {
	year, month, day := at.Date()
	switch group {
	case "hour":
		// Counted from what the clock shows: not all zones differ from UTC by whole hours,
		// and the hour that is there twice a year is two.
		return at.Add(time.Hour - time.Duration(at.Minute())*time.Minute - time.Duration(at.Second())*time.Second - time.Duration(at.Nanosecond()))
	case "week":
		return time.Date(year, month, day+7-(int(at.Weekday())+6)%7, 0, 0, 0, 0, at.Location())
	case "month":
		return time.Date(year, month+1, 1, 0, 0, 0, 0, at.Location())
	}
	return time.Date(year, month, day+1, 0, 0, 0, 0, at.Location())
}

// used reads hours by interval and part.
func (f *Processes) used(ctx context.Context, filter store.UsageFilter, split string, marks []time.Time, limit int, each func(interval int, part string, hours float64)) (int, error) {
	seconds := make([]int64, len(marks))
	for i, m := range marks {
		seconds[i] = m.Unix()
	}
	values, err := store.UsedTimeAllTenants(ctx, f.db, filter, split, seconds, 1, 1, limit)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		n, err := strconv.ParseFloat(v.Value, 64)
		if err != nil {
			return 0, fmt.Errorf("read the use of nodes %q: %w", v.Value, err)
		}
		each(v.Interval, v.Split, n/3600)
	}
	return len(values), nil
}

// reportTotals fills in the parts and the time before.
func (f *Processes) reportTotals(ctx context.Context, filter store.UsageFilter, split string, r *Report) error {
	n, err := f.used(ctx, filter, split, []time.Time{r.Start, r.End}, maxUsageItems+1, func(_ int, part string, hours float64) {
		r.Splits = append(r.Splits, ReportSplit{Name: part, Total: hours})
		r.Total += hours
	})
	if err != nil {
		return err
	}
	if n > maxUsageItems {
		return loom.InvalidFields([]loom.FieldError{{Field: "split", Message: fmt.Sprintf("These are more than %d parts; narrow the days, or filter.", maxUsageItems)}})
	}
	slices.SortStableFunc(r.Splits, func(a, b ReportSplit) int { return cmp.Compare(b.Total, a.Total) })
	r.Parts = len(r.Splits)
	r.Splits = r.Splits[:min(r.Parts, maxReportSplits)]
	before := r.Start.Add(r.Start.Sub(r.End))
	_, err = f.used(ctx, filter, "", []time.Time{before, r.Start}, 1, func(_ int, _ string, hours float64) { r.Before = hours })
	return err
}

// reportIntervals fills in the intervals, those of the greatest parts too unless
// there are too many parts for that.
func (f *Processes) reportIntervals(ctx context.Context, filter store.UsageFilter, split string, r *Report) error {
	n := len(r.Marks) - 1
	r.Hours = make([]float64, n)
	if r.Parts*n > maxReportCells {
		_, err := f.used(ctx, filter, "", r.Marks, n, func(i int, _ string, hours float64) { r.Hours[i] = hours })
		return err
	}
	top := map[string]*ReportSplit{}
	for i := range r.Splits[:min(len(r.Splits), ReportSeries)] {
		r.Splits[i].Hours = make([]float64, n)
		top[r.Splits[i].Name] = &r.Splits[i]
	}
	_, err := f.used(ctx, filter, split, r.Marks, maxReportCells, func(i int, part string, hours float64) {
		r.Hours[i] += hours
		if s := top[part]; s != nil {
			s.Hours[i] = hours
		}
	})
	return err
}
