package ui

import (
	"fmt"
	"strings"
)

// TimelineModel is a chart of what happened when: a lane for each node or step, with
// bars over a common axis. Places and widths are in thousandths of a percent of it.
type TimelineModel struct {
	// ID must be unique in the page.
	ID string
	// Label names the chart for those who do not see it.
	Label string
	Ticks []TimelineTick
	Lanes []TimelineLane
}

// TimelineTick is a mark on the axis: "2 min".
type TimelineTick struct {
	X    int
	Text string
}

// TimelineLane is a row of bars. Bars are listed in their order in time, which is that
// of the keyboard.
type TimelineLane struct {
	ID          string
	Label, Href string
	// Note stands at the end: "1 min 12 s".
	Note string
	Bars []TimelineBar
}

// TimelineBar is one stretch of time.
type TimelineBar struct {
	X, Width int
	Look     DAGLook
	// Text is shown inside as far as its words fit, long ones by their first letters. Label is read out and shown when
	// pointing: "install nginx, complete, 12 s, from 1 min 3 s".
	Text, Label, Href string
	// Critical draws the bar of the longest path with a line beneath.
	Critical bool
}

// share writes a place on the axis for SVG.
func share(n int) string { return fmt.Sprintf("%d.%03d%%", n/1000, n%1000) }

func (b TimelineBar) class() string {
	class := "gantt-bar is-" + string(b.Look)
	if b.Critical {
		class += " is-critical"
	}
	return class
}

// label is the text, with a break of no width where it may end if there is no room for more.
func (b TimelineBar) label() string {
	var parts []string
	for i, word := range strings.Fields(b.Text) {
		if i > 0 {
			word = " " + word
		}
		if cut := strings.TrimSpace(word); len(cut) > shortWord+2 && !strings.Contains(cut, "-") {
			parts = append(parts, word[:len(word)-len(cut)+shortWord], cut[shortWord:])
			continue
		}
		parts = append(parts, word)
	}
	return strings.Join(parts, "\u200b")
}

// shortWord is how many letters of a long word stand for it.
const shortWord = 4

// anchor is where the text of a tick hangs, so that the outer ones stay inside.
func (t TimelineTick) anchor() string {
	switch {
	case t.X < 3_000:
		return "start"
	case t.X > 95_000:
		return "end"
	}
	return "middle"
}
