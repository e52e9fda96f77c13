package loom

import (
	"cmp"
	"context"
	"slices"
	"time"
	_ "time/tzdata" // zones must be known also where the host has no files of them
)

// ViewPreferences are how a person wants pages to look and behave. The zero value is
// what everybody begins with.
type ViewPreferences struct {
	// Theme is "system", "light" or "dark"; "" is "system".
	Theme string `json:"theme,omitempty"`
	// Compact makes rows of tables 32 px high instead of 40.
	Compact bool `json:"compact,omitempty"`
	// Rows of a page of a list, one of RowChoices; 0 is the first.
	Rows int `json:"rows,omitempty"`
	// Zone is the name of a time zone, such as Europe/Berlin; "" is that of the browser, else UTC.
	Zone string `json:"zone,omitempty"`
	// Poll asks for what is new every 5 s instead of following a stream.
	Poll bool `json:"poll,omitempty"`
	// Absolute shows times as date and clock instead of "5 minutes ago".
	Absolute bool `json:"absolute,omitempty"`
	// NoShortcuts turns off shortcuts of single keys.
	NoShortcuts bool `json:"noShortcuts,omitempty"`
	// AnnounceLogs reads new lines of a followed log to those who do not see.
	AnnounceLogs bool `json:"announceLogs,omitempty"`
}

// RowChoices are the lengths of a page of a list, the usual one first.
var RowChoices = []int{25, 50, 100}

// Themes are the colour schemes, the usual one first.
var Themes = []string{"system", "light", "dark"}

// PageRows is how many rows a page of a list has.
func (p ViewPreferences) PageRows() int {
	if slices.Contains(RowChoices, p.Rows) {
		return p.Rows
	}
	return RowChoices[0]
}

// Location is the time zone; one that is not known any more is UTC.
func (p ViewPreferences) Location() *time.Location {
	at, err := time.LoadLocation(cmp.Or(p.Zone, "UTC"))
	if err != nil || p.Zone == "Local" {
		return time.UTC
	}
	return at
}

type zoneKey struct{}

// WithZone gives a context in which sentences name times as clocks there show them.
func WithZone(ctx context.Context, zone *time.Location) context.Context {
	return context.WithValue(ctx, zoneKey{}, zone)
}

// ZoneOf is the zone of the times in sentences; UTC without one.
func ZoneOf(ctx context.Context) *time.Location {
	if zone, ok := ctx.Value(zoneKey{}).(*time.Location); ok && zone != nil {
		return zone
	}
	return time.UTC
}

// Check gives what is wrong, by field of the form; nil when all is right.
func (p ViewPreferences) Check() []FieldError {
	var errs []FieldError
	if p.Theme != "" && !slices.Contains(Themes, p.Theme) {
		errs = append(errs, FieldError{Field: "theme", Message: "A theme is system, light or dark."})
	}
	if p.Rows != 0 && !slices.Contains(RowChoices, p.Rows) {
		errs = append(errs, FieldError{Field: "rows", Message: "A page has 25, 50 or 100 rows."})
	}
	if _, err := time.LoadLocation(p.Zone); err != nil || p.Zone == "Local" {
		errs = append(errs, FieldError{Field: "zone", Message: "There is no time zone of this name; write one such as Europe/Berlin or UTC."})
	}
	return errs
}
