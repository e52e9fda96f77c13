package ui_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"loom/app/testkit/golden"
	"loom/views/ui"
)

// Figures are written alike everywhere.
func TestFigure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value    float64
		decimals int
		want     string
	}{
		{0, 0, "0"}, {0, 1, "0.0"}, {2.5, 0, "2.5"}, {12.345, 1, "12.3"}, {1234, 0, "1\u202f234"}, {1234567.8, 0, "1\u202f234\u202f568"},
		{-1234, 1, "−1\u202f234.0"}, {0.00012, 0, "0.00012"}, {999, 0, "999"}, {1e21, 0, "1\u202f000\u202f000\u202f000\u202f000\u202f000\u202f000\u202f000"},
	} {
		if got := ui.Figure(c.value, c.decimals); got != c.want {
			t.Errorf("Figure(%v, %d) is %q, want %q", c.value, c.decimals, got, c.want)
		}
	}
}

// TestChartGaps: a line has a gap where nothing was measured, and the table says so. A value
// alone is a dash.
func TestChartGaps(t *testing.T) {
	t.Parallel()
	none := math.NaN()
	m := ui.ChartModel{ID: "x", Title: "T", Unit: "u", PlaceWord: "From", Lines: true, Series: []ui.ChartSeries{{Name: "one"}}}
	for range 5 {
		m.Places = append(m.Places, ui.ChartPlace{Short: "place", Long: "the place"})
	}
	for _, c := range []struct {
		name   string
		values []float64
		lines  []string
		empty  int
	}{
		{"all", []float64{0, 1, 1, 1, 0}, []string{"0,208 250,8 500,8 750,8 1000,208"}, 0},
		{"gap", []float64{1, 1, none, 0, 1}, []string{"0,8 250,8", "750,208 1000,8"}, 1},
		{"alone", []float64{1, none, 1, none, 1}, []string{"0,8 20,8", "480,8 520,8", "980,8 1000,8"}, 2},
		{"end", []float64{none, 1, 1}, []string{"250,8 500,8"}, 3},
		{"none", []float64{none, none, none, none, none}, nil, 5},
	} {
		m.Series[0].Values = c.values
		html := golden.Render(t, ui.Chart(m))
		var lines []string
		for _, part := range strings.Split(html, `points="`)[1:] {
			lines = append(lines, part[:strings.IndexByte(part, '"')])
		}
		if !slices.Equal(lines, c.lines) {
			t.Errorf("%s: lines %q, want %q", c.name, lines, c.lines)
		}
		if n := strings.Count(html, ">–</td>"); n != c.empty {
			t.Errorf("%s: %d empty cells, want %d", c.name, n, c.empty)
		}
	}
}

// TestChartMax: a share is drawn on the scale of the whole, so that a low load looks low.
func TestChartMax(t *testing.T) {
	t.Parallel()
	m := ui.ChartModel{ID: "x", Title: "T", Unit: "%", PlaceWord: "From", Lines: true, Series: []ui.ChartSeries{{Name: "CPU", Values: []float64{4, 4}}}, Places: make([]ui.ChartPlace, 2)}
	for _, c := range []struct {
		name         string
		max          float64
		points, tick string
	}{
		{"without", 0, "0,8 1000,8", ">4 %<"},
		{"a hundred", 100, "0,200 1000,200", ">100 %<"},
		{"exceeded", 3, "0,8 1000,8", ">4 %<"},
	} {
		m.Max = c.max
		html := golden.Render(t, ui.Chart(m))
		for _, want := range []string{`points="` + c.points + `"`, c.tick} {
			if !strings.Contains(html, want) {
				t.Errorf("%s: no %s in %s", c.name, want, html)
			}
		}
	}
}

// FuzzChart draws whatever it is given: no more series than it can tell apart, at
// most six labels at an axis, and no coordinate that is no number.
func FuzzChart(f *testing.F) {
	f.Add(uint8(3), uint8(14), 10.0, 480.0, false)
	f.Add(uint8(9), uint8(0), 0.0, 0.0, true)
	f.Add(uint8(1), uint8(1), 1e-9, math.Inf(1), false)
	f.Add(uint8(2), uint8(200), -5.0, math.NaN(), true)
	f.Fuzz(func(t *testing.T, series, places uint8, value, limit float64, lines bool) {
		if math.IsInf(value, 0) || math.Abs(value) > 1e15 {
			t.Skip("no figure of Loom's is as large as that")
		}
		m := ui.ChartModel{ID: "x", Title: "T", Unit: "u", PlaceWord: "Day", Lines: lines, Limit: &ui.ChartLimit{Name: "quota", Value: limit}}
		for range places {
			m.Places = append(m.Places, ui.ChartPlace{Short: "place", Long: "the place"})
		}
		for i := range series {
			s := ui.ChartSeries{Name: "one"}
			for j := range places {
				s.Values = append(s.Values, value*float64(i)*float64(j))
			}
			m.Series = append(m.Series, s)
		}
		html := golden.Render(t, ui.Chart(m))
		for _, wrong := range []string{"NaN", "Inf", `class="bar s7"`, `class="line s7"`} {
			if strings.Contains(html, wrong) {
				t.Errorf("the chart holds %q", wrong)
			}
		}
		if n := strings.Count(html, ">place</text>"); n > 6 {
			t.Errorf("%d labels below the chart", n)
		}
		if n := strings.Count(html, `text-anchor="end" dominant-baseline`); n > 6 {
			t.Errorf("%d labels beside the chart", n)
		}
	})
}
