package system

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"loom/app/loom"
	"loom/app/processes"
	"loom/views/adminview"
	"loom/views/route"
	"loom/views/ui"
)

// statesID is the part of the page of queues that counts what is on each. It is fetched
// again less often than what waits by tenant: it counts all there is.
const statesID = "queue-states"

// queueStatesPart is that part as it is now.
func (s *Server) queueStatesPart(r *http.Request, actor loom.Actor) (templ.Component, error) {
	queues, err := s.Processes.ListQueues(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	attrs := ui.Live(route.SystemQueues())
	attrs["hx-trigger"] = "loom:live, every 15s"
	return adminview.Region(statesID, attrs, s.queueStates(queues)), nil
}

// paceParts are the counts of each queue and the pictures of the last hour.
func (s *Server) paceParts(r *http.Request, actor loom.Actor) ([]templ.Component, error) {
	pace, err := s.Processes.QueueRates(r.Context(), actor)
	if err != nil {
		return nil, err
	}
	states, err := s.queueStatesPart(r, actor)
	if err != nil {
		return nil, err
	}
	charts := adminview.Bare("c-card l-stack", adminview.Text("Nothing was done within the last hour."))
	if len(pace) > 0 {
		done, wait, run := s.paceCharts(ui.ViewerOf(r.Context()), pace)
		charts = adminview.Bare("l-stack", adminview.Bare("c-card", ui.Chart(done)), adminview.Bare("c-card", ui.Chart(wait)), adminview.Bare("c-card", ui.Chart(run)))
	}
	return []templ.Component{states, charts}, nil
}

// paceCharts are the throughput, and how long tasks waited and ran.
func (s *Server) paceCharts(see ui.Viewer, pace []processes.QueueRate) (done, wait, run ui.ChartModel) {
	const stretch = processes.RateWindow / processes.RateIntervals
	places := make([]ui.ChartPlace, processes.RateIntervals)
	start := see.In(s.Now()).Add(-processes.RateWindow)
	series := make([][]float64, 6)
	for i := range series {
		series[i] = make([]float64, processes.RateIntervals)
		for stretch := range series[i] {
			if i >= 2 { // how long tasks waited and ran is not known where there were none
				series[i][stretch] = math.NaN()
			}
		}
	}
	for i := range places {
		from := start.Add(time.Duration(i) * stretch)
		places[i] = ui.ChartPlace{Short: from.Format("15:04"), Long: from.Format("15:04") + " to " + from.Add(stretch).Format("15:04 MST")}
	}
	for _, p := range pace {
		if p.Stretch < 0 || p.Stretch >= processes.RateIntervals {
			continue
		}
		for i, v := range []float64{float64(p.Tasks), float64(p.Others), p.Wait50, p.Wait95, p.Run50, p.Run95} {
			if i < 2 || p.Tasks > 0 {
				series[i][p.Stretch] = v
			}
		}
	}
	two := func(id, title, unit, first, second string, lines bool, at, decimals int) ui.ChartModel {
		return ui.ChartModel{ID: id, Title: title, Unit: unit, PlaceWord: "From", Lines: lines, Decimals: decimals, Places: places,
			Series: []ui.ChartSeries{{Name: first, Values: series[at]}, {Name: second, Values: series[at+1]}}}
	}
	return two("pace-done", "Done within five minutes", "River jobs", "tasks", "others", false, 0, 0),
		two("pace-wait", "Wait for a worker", "seconds", "p50", "p95", true, 2, 2),
		two("pace-run", "Run time of tasks", "seconds", "p50", "p95", true, 4, 2)
}

// countedStates are the columns of the table of queues.
var countedStates = []string{"available", "running", "scheduled", "retryable", "pending", "discarded"}

// cappedText writes a count that stops at 100,000.
func cappedText(n int) string {
	if n >= 100_000 {
		return "100 000+"
	}
	return strconv.Itoa(n)
}
