package ui

import (
	"context"
	"fmt"
	"time"

	"loom/app/loom"
)

// Viewer is the person in front of the page, and how they want times shown.
type Viewer struct {
	// Zone of the times; nil is UTC.
	Zone *time.Location
	// Absolute shows date and clock where others see "5 minutes ago".
	Absolute bool
	// AnnounceLogs reads new lines of a followed log aloud.
	AnnounceLogs bool
	// Actor is that person, Now the time of the request.
	Actor loom.Actor
	Now   time.Time
	// Here is the address of the page that is shown, From that of the page from which a
	// question was opened: where forms lead back to. "" is the usual page.
	Here, From string
}

// FieldFrom is the field of a form that says which page it leads back to.
const FieldFrom = "from"

// logLive is how a screen reader follows a log.
func (v Viewer) logLive() string {
	if v.AnnounceLogs {
		return "polite"
	}
	return "off"
}

type viewerKey struct{}

// WithViewer gives a context in which components show times as the viewer wants.
func WithViewer(ctx context.Context, v Viewer) context.Context {
	return context.WithValue(ctx, viewerKey{}, v)
}

// ViewerOf is the viewer of a context; UTC and relative times where there is none.
func ViewerOf(ctx context.Context) Viewer {
	v, _ := ctx.Value(viewerKey{}).(Viewer)
	if v.Zone == nil {
		v.Zone = time.UTC
	}
	return v
}

// In gives a time in the viewer's zone.
func (v Viewer) In(t time.Time) time.Time {
	if v.Zone == nil {
		return t.UTC()
	}
	return t.In(v.Zone)
}

// Moment gives a time to the minute, with its zone: "12 June 2026, 14:00 CEST".
func (v Viewer) Moment(t time.Time) string { return v.In(t).Format("2 January 2006, 15:04 MST") }

// Stamp gives a time in the form of tables: "12 Jun 2026, 14:00:05".
func (v Viewer) Stamp(t time.Time) string { return v.In(t).Format("2 Jan 2006, 15:04:05") }

// Full gives a time in full, with its zone: "Fri 12 Jun 2026, 14:00:05 CEST".
func (v Viewer) Full(t time.Time) string { return Absolute(v.In(t)) }

// Clock gives the time of a line of a log: "14:00:05.204".
func (v Viewer) Clock(t time.Time) string { return v.In(t).Format("15:04:05.000") }

// Day gives a day in full: "Friday, 12 June 2026".
func (v Viewer) Day(t time.Time) string { return v.In(t).Format("Monday, 2 January 2006") }

// ParseDay reads a day such as "2026-06-09" as its beginning where the viewer is. The day before
// and the day after have years of four digits in every zone.
func (v Viewer) ParseDay(text string) (time.Time, error) {
	day, err := time.ParseInLocation(time.DateOnly, text, v.In(time.Time{}).Location())
	if err == nil && (day.Year() < 1000 || day.Year() > 9998) {
		err = fmt.Errorf("the year %d is no year of this calendar", day.Year())
	}
	return day, err
}

// By names who did something: "you" or the name.
func (v Viewer) By(user loom.UserID) string {
	if user == v.Actor.User {
		return "you"
	}
	return string(user)
}

func (v Viewer) text(t, now time.Time) string {
	if v.Absolute {
		return v.Stamp(t)
	}
	return Relative(t, now)
}

func (v Viewer) title(t, now time.Time) string {
	if v.Absolute {
		return v.Full(t) + ", " + Relative(t, now)
	}
	return v.Full(t)
}
