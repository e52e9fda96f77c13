package ui

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Sizes of a plan's graph in pixels.
const (
	DAGNodeWidth  = 176
	DAGNodeHeight = 52
	DAGColumnGap  = 56
	DAGRowGap     = 16
)

// dagLineLimit is how many characters of the second line fit, at 12 px of the
// fixed-width type.
const dagLineLimit = 21

// DAGModel is a plan drawn as a graph; positions are the server's work.
type DAGModel struct {
	// ID must be unique in the page; ids inside start with it.
	ID string
	// Title and Description are for those who do not see the picture.
	Title, Description string
	Width, Height      int
	Nodes              []DAGNode
	Edges              []DAGEdge
}

// DAGFit is the narrowest room in which a picture is shown.
type DAGFit string

// The rooms: a phone, a tablet or a small window, and a large one.
const (
	FitsPhones  DAGFit = "s"
	FitsWindows DAGFit = "m"
	FitsLarge   DAGFit = "l"
)

// Widths of pictures in pixels, up to which they are not made smaller than .6 of their size
// in a room: of 356, 638 and 1102 pixels. No picture should be wider than WidestDAG.
const (
	phonesDAG  = 592
	windowsDAG = 1060
	WidestDAG  = 1830
)

// Fits is the narrowest room in which a picture is shown.
func (m DAGModel) Fits() DAGFit {
	switch {
	case m.Width <= phonesDAG:
		return FitsPhones
	case m.Width <= windowsDAG:
		return FitsWindows
	}
	return FitsLarge
}

// DAGNode is a box. Nodes are listed in tab order: by stage, then row.
type DAGNode struct {
	// ID is unique in the graph, without spaces: a task number, "g4" for a gate.
	ID            string
	X, Y          int
	Width, Height int
	State         State
	// Name of the state for the stylesheet: waiting, running, complete, failed,
	// retry, paused, off.
	Look DAGLook
	// Title is the action, Line the service or node (cut in the middle to fit).
	Title, Line string
	Href        string
	// Label is the name that is read out and shown when pointing: "install nginx on
	// web-2, failed, stage 5".
	Label    string
	Critical bool
	// Group draws the doubled outline of a box that stands for several tasks.
	Group bool
	// Gate draws a small dot instead of a box.
	Gate bool
}

// DAGLook is how a box is drawn.
type DAGLook string

// The looks of boxes.
const (
	LookWaiting  DAGLook = "waiting"
	LookRunning  DAGLook = "running"
	LookComplete DAGLook = "complete"
	LookFailed   DAGLook = "failed"
	LookRetry    DAGLook = "retry"
	LookPaused   DAGLook = "paused"
	LookOff      DAGLook = "off"
)

// LookOf gives the look that goes with a state's tone.
func LookOf(s State) DAGLook {
	switch s.Tone {
	case ToneOK:
		return LookComplete
	case ToneRun:
		return LookRunning
	case ToneBad:
		return LookFailed
	case ToneWarn:
		return LookRetry
	case ToneHold:
		return LookPaused
	}
	if s.Icon == "ban" {
		return LookOff
	}
	return LookWaiting
}

// DAGEdge is a curve from one node to another.
type DAGEdge struct {
	From, To string
	// Path is SVG path data.
	Path     string
	Critical bool
}

// MiddleEllipsis cuts a text in the middle so that it has at most limit
// characters.
func MiddleEllipsis(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)
	if limit < 3 {
		return string(runes[:max(limit, 0)])
	}
	head := limit / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(limit-head-1):])
}

func (n DAGNode) class() string {
	parts := []string{"dag-node", "is-" + string(n.Look)}
	if n.Critical {
		parts = append(parts, "is-critical")
	}
	if n.Group {
		parts = append(parts, "is-group")
	}
	if n.Gate {
		parts = append(parts, "is-gate")
	}
	return strings.Join(parts, " ")
}

func (n DAGNode) transform() string { return fmt.Sprintf("translate(%d %d)", n.X, n.Y) }

// stateWord is the word at the right end of the first line; waiting goes without
// saying, since its box is dashed and the list below says it. A group counts its states
// in the second line.
func (n DAGNode) stateWord() string {
	if n.Look == LookWaiting || n.Group {
		return ""
	}
	return n.State.Word
}

func px(n int) string { return strconv.Itoa(n) }
