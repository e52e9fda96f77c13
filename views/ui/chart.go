package ui

import (
	"math"
	"strconv"
	"strings"
)

// MaxSeries is how many series a chart tells apart; callers sum up the rest.
const MaxSeries = 6

// Sizes of a chart in pixels: the plot, the line of labels below it, and the
// column of labels beside it.
const (
	chartHeight = 200
	chartTop    = 8
	chartFoot   = 24
	chartAxis   = 56
	// chartTicks bounds the labels beside the plot, chartLabels those below it, which
	// must stay apart on a phone.
	chartTicks  = 6
	chartLabels = 4
	// chartScale is the width of drawn lines in units of their own.
	chartScale = 1000
)

// ChartModel draws figures over time: bars that stand on each other, or lines.
// The numbers stand in the table below, which is also what those read who do not
// see the picture.
type ChartModel struct {
	// ID must be unique in the page.
	ID string
	// Title names the chart, Unit what its axis counts: "node-hours".
	Title, Unit string
	// Lines draws lines instead of bars.
	Lines bool
	// Places are the steps of the horizontal axis, PlaceWord what they are: "Day".
	Places    []ChartPlace
	PlaceWord string
	// Series are MaxSeries at most; more are not drawn.
	Series []ChartSeries
	// Max is the upper end of the vertical axis where what is shown has one, such as 100 %; 0
	// takes a round number above the highest value.
	Max float64
	// Limit is a line across, left out when it is nil or far above the rest.
	Limit *ChartLimit
	// Decimals of the values of the table.
	Decimals int
}

// ChartPlace is a step of the horizontal axis: Short below it, Long in the table.
type ChartPlace struct{ Short, Long string }

// ChartSeries is a value for each place, NaN where nothing was measured: lines have a gap
// there. Note stands behind its name in the legend.
type ChartSeries struct {
	Name, Note string
	Values     []float64
}

// ChartLimit is a line across the chart with its name.
type ChartLimit struct {
	Name  string
	Value float64
}

// series are those that are drawn.
func (m ChartModel) series() []ChartSeries { return m.Series[:min(len(m.Series), MaxSeries)] }

// measured reports whether a series has a value at a place.
func (s ChartSeries) measured(place int) bool {
	return place < len(s.Values) && !math.IsNaN(s.Values[place])
}

// text is a value for the table.
func (s ChartSeries) text(place, decimals int) string {
	if !s.measured(place) {
		return "–"
	}
	return Figure(s.value(place), decimals)
}

// value gives a value of a series, 0 where it has none.
func (s ChartSeries) value(place int) float64 {
	if !s.measured(place) || s.Values[place] < 0 {
		return 0
	}
	return s.Values[place]
}

// Highest is the greatest value that is drawn: of the sum of a place for bars.
func (m ChartModel) Highest() float64 {
	high := 0.0
	for place := range m.Places {
		sum := 0.0
		for _, s := range m.series() {
			if m.Lines {
				high = max(high, s.value(place))
			}
			sum += s.value(place)
		}
		if !m.Lines {
			high = max(high, sum)
		}
	}
	return high
}

// ShowsLimit reports whether the limit is near enough to be drawn.
func (m ChartModel) ShowsLimit() bool {
	return m.Limit != nil && m.Limit.Value > 0 && m.Limit.Value <= 3*m.Highest()
}

// top is the end of the vertical axis, step the distance of its marks.
func (m ChartModel) scale() (top, step float64) {
	high := max(m.Highest(), m.Max)
	if m.ShowsLimit() {
		high = max(high, m.Limit.Value)
	}
	if high <= 0 {
		return 1, 1
	}
	step = math.Pow(10, math.Floor(math.Log10(high/(chartTicks-1))))
	for _, factor := range []float64{1, 2, 2.5, 5, 10} {
		if math.Ceil(high/(step*factor)) <= chartTicks-1 {
			step *= factor
			break
		}
	}
	return step * math.Ceil(high/step), step
}

// tick is a mark of an axis: at is in pixels or in percent.
type tick struct{ at, text string }

func (m ChartModel) heights() []tick {
	top, step := m.scale()
	var found []tick
	for v := 0.0; v <= top+step/2; v += step {
		text := Figure(v, 0)
		if m.Unit == "%" {
			text += " %"
		}
		found = append(found, tick{m.y(v, top), text})
	}
	return found
}

// y is where a value stands.
func (m ChartModel) y(v, top float64) string { return decimal(chartTop + chartHeight*(1-v/top)) }

// places are the labels below: every so many, so that they stay apart.
func (m ChartModel) marks() []tick {
	n := len(m.Places)
	every := (n + chartLabels - 1) / chartLabels
	var found []tick
	for i := 0; i < n; i += max(every, 1) {
		found = append(found, tick{m.middle(i), m.Places[i].Short})
	}
	return found
}

func (m ChartModel) middle(place int) string {
	if m.Lines && len(m.Places) > 1 {
		return decimal(100*float64(place)/float64(len(m.Places)-1)) + "%"
	}
	return decimal(100*(float64(place)+.5)/float64(max(len(m.Places), 1))) + "%"
}

// anchor keeps the labels of lines within the picture: the first has room below the axis,
// and would touch the second on phones if it began there.
func (m ChartModel) anchor(at string) string {
	if m.Lines && at == "100%" {
		return "end"
	}
	return "middle"
}

// bar is a piece of a bar: x and width in percent, y and height in pixels.
type bar struct {
	x, width, y, height, title string
	series                     int
}

func (m ChartModel) bars() []bar {
	top, _ := m.scale()
	wide := 100 / float64(max(len(m.Places), 1))
	gap := wide * .2
	var found []bar
	for place := range m.Places {
		below := 0.0
		for i, s := range m.series() {
			v := s.value(place)
			if v <= 0 {
				continue
			}
			found = append(found, bar{
				x: decimal(float64(place)*wide+gap/2) + "%", width: decimal(wide-gap) + "%",
				y: m.y(below+v, top), height: decimal(max(chartHeight*v/top, .5)), series: i,
				title: m.Places[place].Long + ": " + s.Name + " " + Figure(v, m.Decimals) + " " + m.Unit,
			})
			below += v
		}
	}
	return found
}

// lonely is half the width of the dash that stands for a value without neighbors.
const lonely = chartScale / 50

// lines gives the points of a series in units of their own: a line for each stretch that was
// measured.
func (m ChartModel) lines(s ChartSeries) []string {
	top, _ := m.scale()
	var found, points []string
	end := func(last float64, y string) {
		if len(points) == 1 {
			points = []string{decimal(max(last-lonely, 0)) + "," + y, decimal(min(last+lonely, chartScale)) + "," + y}
		}
		if len(points) > 0 {
			found, points = append(found, strings.Join(points, " ")), nil
		}
	}
	x, y := 0.0, ""
	for i := range m.Places {
		if !s.measured(i) {
			end(x, y)
			continue
		}
		x, y = float64(chartScale)/2, m.y(s.value(i), top)
		if len(m.Places) > 1 {
			x = chartScale * float64(i) / float64(len(m.Places)-1)
		}
		points = append(points, decimal(x)+","+y)
	}
	end(x, y)
	return found
}

// sum adds up a series, total a place.
func (s ChartSeries) sum() (sum float64) {
	for i := range s.Values {
		sum += s.value(i)
	}
	return sum
}

func (m ChartModel) total(place int) (sum float64) {
	for _, s := range m.series() {
		sum += s.value(place)
	}
	return sum
}

// Summary is the chart in a sentence, for those who do not see it.
func (m ChartModel) Summary() string {
	parts := []string{m.Title + ": " + Count(len(m.Places), "value", "values")}
	if n := len(m.Places); n > 0 {
		parts = append(parts, "from "+m.Places[0].Long+" to "+m.Places[n-1].Long)
	}
	parts = append(parts, "highest "+Figure(m.Highest(), m.Decimals)+" "+m.Unit)
	if m.ShowsLimit() {
		parts = append(parts, m.Limit.Name+" "+Figure(m.Limit.Value, 0))
	}
	return strings.Join(parts, ", ")
}

// columns are those of the table: a total is shown where bars add up.
func (m ChartModel) columns() []Column {
	columns := []Column{{Label: m.PlaceWord}}
	for _, s := range m.series() {
		columns = append(columns, Column{Label: s.Name, Numeric: true})
	}
	if m.sums() {
		columns = append(columns, Column{Label: "Total", Numeric: true})
	}
	return columns
}

func (m ChartModel) sums() bool { return !m.Lines && len(m.series()) > 1 }

// SeriesClass is the class of the marks of a series, from 0.
func SeriesClass(series int) string { return "s" + strconv.Itoa(series+1) }

// decimal is a coordinate: two digits behind the point, none that say nothing.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// Figure writes a number for people: at least decimals digits behind the point,
// those that a small one needs, and blanks between thousands.
func Figure(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals == 0 && v != math.Trunc(v) {
		text = strconv.FormatFloat(v, 'g', 3, 64)
		if math.Abs(v) >= 1000 || strings.Contains(text, "e") {
			text = strconv.FormatFloat(v, 'f', 0, 64)
		}
	}
	whole, rest, _ := strings.Cut(text, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "−", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "\u202f" + whole[at:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}

// SparkModel is a small line within a table.
type SparkModel struct {
	// Label says what it is of; the highest value is added for those who do not see.
	Label string
	// Values are in Unit, NaN where nothing is known: the line has a gap there. Max is at the
	// top, 0 for the highest of them.
	Values []float64
	Max    float64
	Unit   string
	// Last shows the last value beside the line.
	Last bool
}

// Sizes of a spark in pixels.
const (
	sparkWidth  = 96
	sparkHeight = 24
)

// last is the newest value that is known, "" for none.
func (m SparkModel) last() string {
	for i := len(m.Values) - 1; i >= 0; i-- {
		if !math.IsNaN(m.Values[i]) {
			return Figure(m.Values[i], 0) + " " + m.Unit
		}
	}
	return ""
}

func (m SparkModel) highest() (high float64) {
	for _, v := range m.Values {
		if !math.IsNaN(v) {
			high = max(high, v)
		}
	}
	return high
}

func (m SparkModel) summary() string {
	return m.Label + ": highest " + Figure(m.highest(), 0) + " " + m.Unit
}

func (m SparkModel) path() string {
	high := max(m.highest(), m.Max, 1e-9)
	var b strings.Builder
	pen := "M"
	for i, v := range m.Values {
		if math.IsNaN(v) {
			pen = "M"
			continue
		}
		x := 1 + (sparkWidth-2)*float64(i)/float64(max(len(m.Values)-1, 1))
		b.WriteString(pen + decimal(x) + " " + decimal(2+(sparkHeight-4)*(1-max(v, 0)/high)))
		if pen == "M" && (i+1 == len(m.Values) || math.IsNaN(m.Values[i+1])) {
			b.WriteString("h1") // alone between gaps
		}
		pen = "L"
	}
	return b.String()
}

// QuotaModel is how much of a quota is used. Max < 0 means that there is none.
type QuotaModel struct {
	// Label says of what: "Nodes".
	Label     string
	Used, Max int
}

// tone marks what is nearly and what is wholly used up.
func (m QuotaModel) tone() Tone {
	switch {
	case m.Max < 0:
		return ""
	case m.Used >= m.Max:
		return ToneBad
	case m.Used*10 >= m.Max*8:
		return ToneWarn
	}
	return ""
}

func (m QuotaModel) text() string {
	used := strconv.Itoa(m.Used)
	switch {
	case m.Max < 0:
		return used + ", no limit"
	case m.Max == 0 || m.Used > m.Max:
		return used + " of " + strconv.Itoa(m.Max) + ", none left"
	case m.Used == m.Max:
		return used + " of " + strconv.Itoa(m.Max) + ", all used"
	}
	return used + " of " + strconv.Itoa(m.Max) + ", " + strconv.Itoa(100*m.Used/m.Max) + " %"
}
