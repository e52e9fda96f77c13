package ui

import (
	"fmt"
	"strconv"
	"time"
)

// callID is the id of the n-th call of a JSON pane.
func callID(id string, n int) string { return id + "-call-" + strconv.Itoa(n) }

// Duration gives a duration in Loom's one format, with at most two units:
// "< 0.1 s", "0.4 s", "12 s", "4 min 12 s", "1 h 5 min", "3 d 4 h". Negative ones count as 0.
func Duration(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	if d > 0 && d < 100*time.Millisecond {
		return "< 0.1 s"
	}
	if d < 10*time.Second && d%time.Second != 0 {
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	}
	seconds := int64(d / time.Second)
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case seconds < 3600:
		return units(seconds/60, "min", seconds%60, "s")
	case seconds < 24*3600:
		return units(seconds/3600, "h", seconds%3600/60, "min")
	}
	return units(seconds/(24*3600), "d", seconds%(24*3600)/3600, "h")
}

// tickOf is a duration in seconds, for the script that counts on.
func tickOf(d time.Duration) string {
	return strconv.FormatFloat(max(0, d.Seconds()), 'f', 1, 64)
}

// ageOf is how long ago something was, in seconds, for the script that lets relative
// times go on; less than 0 for what is still to come.
func ageOf(t, now time.Time) string {
	return strconv.FormatInt(int64(now.Sub(t)/time.Second), 10)
}

func units(major int64, majorUnit string, minor int64, minorUnit string) string {
	if minor == 0 {
		return fmt.Sprintf("%d %s", major, majorUnit)
	}
	return fmt.Sprintf("%d %s %d %s", major, majorUnit, minor, minorUnit)
}

// Relative gives a time as seen from now: "just now", "5 min ago", "in 3 d". What is to come is rounded to the nearest unit. The zero time is "never".
func Relative(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	future := d < 0
	var half time.Duration // 1 where half a unit is added, to round
	if future {
		d, half = -d, 1
	}
	minutes, hours, days := d+half*30*time.Second, d+half*30*time.Minute, d+half*12*time.Hour
	var text string
	switch {
	case d < 10*time.Second:
		return "just now"
	case d < time.Minute:
		text = whole(d/time.Second, "s")
	case minutes < time.Hour:
		text = whole(minutes/time.Minute, "min")
	case hours < 48*time.Hour:
		text = whole(hours/time.Hour, "h")
	case days < 60*24*time.Hour:
		text = whole(days/(24*time.Hour), "d")
	case d < 730*24*time.Hour:
		text = whole((d+15*24*time.Hour)/(30*24*time.Hour), "mo")
	default:
		text = whole(d/(365*24*time.Hour), "y")
	}
	if future {
		return "in " + text
	}
	return text + " ago"
}

// Absolute gives a time in full, with its zone: "Fri 12 Jun 2026, 14:00:05 CEST".
func Absolute(t time.Time) string { return t.Format("Mon 2 Jan 2006, 15:04:05 MST") }

func whole(n time.Duration, unit string) string { return strconv.Itoa(int(n)) + " " + unit }

// Version gives the version of an entry or a file: "v2".
func Version(n int) string { return "v" + strconv.Itoa(n) }

// Count gives a number with the fitting word: "1 node", "5 nodes".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Bytes writes a number of bytes for people.
func Bytes(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
	case bytes >= 1<<20:
		return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
	case bytes >= 1<<10:
		return strconv.FormatFloat(float64(bytes)/(1<<10), 'f', 1, 64) + " KiB"
	}
	return Count(int(bytes), "byte", "bytes")
}
