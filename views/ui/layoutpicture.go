package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"loom/app/loom"
)

// Sizes of the picture of a layout in pixels.
const (
	layoutColumn   = 84 // a group of nodes
	layoutGap      = 12
	layoutRow      = 22 // a service
	layoutHead     = 46 // how many nodes of which type
	layoutTotal    = 64 // how many nodes have a service
	layoutNarrow   = 44 // a group, and
	layoutNumber   = 28 // how many nodes have a service, where there is little room
	layoutShadow   = 4
	layoutLetter   = 7.3 // of a name, at 12 px of the fixed-width type
	layoutNameMost = 22  // letters of a service that are shown
)

// LayoutPictureModel is which services share which nodes: groups of equal nodes as
// columns, services as rows, and the same as a table.
type LayoutPictureModel struct {
	// ID must be unique in the page; ids inside start with it.
	ID string
	// Title names the picture, "Layout" when empty.
	Title  string
	Groups []LayoutPictureGroup
	// Folded folds the table below the picture.
	Folded bool
	// Narrow draws smaller and leaves to the table what it says as well.
	Narrow bool
}

// LayoutPictureGroup is so many equal nodes.
type LayoutPictureGroup struct {
	Count           int
	Services        []string
	Hardware, Image string
}

// NewLayoutPicture shows a layout. Nodes that differ in their types only are groups
// of their own, as in the layout.
func NewLayoutPicture(id string, l loom.Layout) LayoutPictureModel {
	m := LayoutPictureModel{ID: id}
	for _, g := range l {
		m.Groups = append(m.Groups, LayoutPictureGroup{Count: g.Count, Services: slices.Sorted(slices.Values(g.Services)), Hardware: g.HardwareType, Image: g.ImageType})
	}
	return m
}

func (m LayoutPictureModel) title() string { return cmp.Or(m.Title, "Layout") }

// Summary is the picture in words: "3 nodes in 2 kinds: 1 with haproxy, 2 with nginx".
func (m LayoutPictureModel) Summary() string {
	parts := make([]string, len(m.Groups))
	nodes := 0
	for i, g := range m.Groups {
		nodes += g.Count
		parts[i] = strconv.Itoa(g.Count) + " with " + strings.Join(g.Services, ", ")
	}
	return Count(nodes, "node", "nodes") + " in " + Count(len(m.Groups), "kind", "kinds") + ": " + strings.Join(parts, "; ")
}

// layoutService is a row: on which groups a service is, and on how many nodes.
type layoutService struct {
	name  string
	on    []bool
	first int
	nodes int
	all   bool
}

// services are the rows: those that are on every node, then by the first group that
// has them, then by name.
func (m LayoutPictureModel) services() []layoutService {
	byName := map[string]*layoutService{}
	for i, g := range m.Groups {
		for _, name := range g.Services {
			s := byName[name]
			if s == nil {
				s = &layoutService{name: name, on: make([]bool, len(m.Groups)), first: i, all: true}
				byName[name] = s
			}
			if !s.on[i] {
				s.on[i], s.nodes = true, s.nodes+g.Count
			}
		}
	}
	rows := make([]layoutService, 0, len(byName))
	for _, s := range byName {
		s.all = !slices.Contains(s.on, false)
		rows = append(rows, *s)
	}
	slices.SortFunc(rows, func(a, b layoutService) int {
		if a.all != b.all {
			return map[bool]int{true: -1, false: 1}[a.all]
		}
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.name, b.name))
	})
	return rows
}

// worthDrawing says whether a picture tells more than the table.
func (m LayoutPictureModel) worthDrawing() bool { return len(m.Groups) > 1 }

// names is the width of the column of names.
func (m LayoutPictureModel) names() int {
	longest := 4
	for _, g := range m.Groups {
		for _, name := range g.Services {
			longest = max(longest, len([]rune(name)))
		}
	}
	return int(float64(min(longest, layoutNameMost))*layoutLetter) + layoutGap
}

func (m LayoutPictureModel) column() int {
	if m.Narrow {
		return layoutNarrow
	}
	return layoutColumn
}

// x is the left edge of a group; the names stand in a picture of their own before it,
// so that they stay when it is scrolled.
func (m LayoutPictureModel) x(group int) int {
	return 1 + group*(m.column()+layoutGap)
}

func (m LayoutPictureModel) width() int {
	if m.Narrow {
		return m.x(len(m.Groups)) + layoutNumber
	}
	return m.x(len(m.Groups)) + layoutTotal
}

// countY is the line of how many nodes there are.
func (m LayoutPictureModel) countY() int {
	if m.Narrow {
		return 28
	}
	return 20
}

// totalText is on how many nodes a service is.
func (m LayoutPictureModel) totalText(nodes int) string {
	if m.Narrow {
		return strconv.Itoa(nodes)
	}
	return Count(nodes, "node", "nodes")
}

func (m LayoutPictureModel) height() int {
	return layoutHead + len(m.services())*layoutRow + layoutShadow + 6
}

func layoutY(row int) int { return layoutHead + row*layoutRow }

// hardwareLine is the type of a group, cut so that it fits its column.
func (g LayoutPictureGroup) hardwareLine() string { return MiddleEllipsis(g.Hardware, 12) }

// Label is a group in words.
func (g LayoutPictureGroup) Label() string {
	label := Count(g.Count, "node", "nodes") + " with " + strings.Join(g.Services, ", ")
	if g.Hardware != "" {
		label += "; " + g.Hardware
	}
	if g.Image != "" {
		label += ", " + g.Image
	}
	return label
}
