package clusters

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"loom/app/clusters"
	"loom/app/loom"
	"loom/app/web/page"
	"loom/views/clusterview"
	"loom/views/ui"
)

// loadShown is how many steps of load are one place of the picture: a quarter of an hour.
const loadShown = 3

// nodeLoad is what the machine of a node had in use over the last day, nil where it has none.
func (s *Server) nodeLoad(r *http.Request, actor loom.Actor, v clusters.ClusterView, n loom.Node) (templ.Component, error) {
	if n.State != loom.NodeReady {
		return nil, nil
	}
	load, err := s.Fleet.Load(r.Context(), actor, v.ID, n.ID)
	if err != nil {
		return nil, err
	}
	if len(load.CPU) == 0 {
		return clusterview.NodeLoad(ui.ChartModel{}, noLoad(v, n.ID)), nil
	}
	chart := loadChart(load, ui.ViewerOf(r.Context()))
	if text := fewPoints(chart); text != "" {
		return clusterview.NodeLoad(ui.ChartModel{}, text), nil
	}
	return clusterview.NodeLoad(chart, ""), nil
}

// fewest is how many places with values a picture of a load needs.
const fewest = 3

// fewPoints says the latest values of a load that is known at fewer places than make a
// picture, "" of others.
func fewPoints(chart ui.ChartModel) string {
	known, parts := 0, []string{}
	for _, series := range chart.Series {
		n, latest := 0, math.NaN()
		for _, value := range series.Values {
			if !math.IsNaN(value) {
				n, latest = n+1, value
			}
		}
		if known = max(known, n); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", series.Name, latest))
		}
	}
	if known >= fewest || len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, " · ") + ". The chart starts after " + strconv.Itoa(fewest) + " measurements."
}

// fillLoads adds to rows how much CPU their machines had in use over the last day.
func (s *Server) fillLoads(ctx context.Context, actor loom.Actor, id loom.ClusterID, rows []clusterview.NodeRow) error {
	ids := make([]loom.NodeID, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	loads, err := s.Fleet.Loads(ctx, actor, id, ids)
	for i := range rows {
		rows[i].CPU = means(loads[ids[i]].CPU)
	}
	return err
}

// loadChart draws a load over the whole of the last day.
func loadChart(load loom.NodeLoad, see ui.Viewer) ui.ChartModel {
	before := max(0, loom.LoadPoints-len(load.CPU)) / loadShown * loadShown
	load.Start = load.Start.Add(-time.Duration(before) * loom.LoadStep)
	unknown := slices.Repeat([]int{-1}, before)
	load.CPU, load.Memory, load.Disk = slices.Concat(unknown, load.CPU), slices.Concat(unknown, load.Memory), slices.Concat(unknown, load.Disk)
	chart := ui.ChartModel{ID: "node-load", Title: "Last 24 hours", Unit: "%", Max: 100, Lines: true, PlaceWord: "From",
		Series: []ui.ChartSeries{{Name: "CPU", Values: means(load.CPU)}, {Name: "Memory", Values: means(load.Memory)}, {Name: "Disk", Values: means(load.Disk)}}}
	for at := range chart.Series[0].Values {
		chart.Places = append(chart.Places, page.PlaceOf(see.In(load.Start.Add(time.Duration(at)*loadShown*loom.LoadStep)), "hour"))
	}
	return chart
}

// means are those of each place of the picture, NaN where nothing is known.
func means(percent []int) []float64 {
	var out []float64
	for len(percent) > 0 {
		sum, known := 0.0, 0.0
		few := percent[:min(loadShown, len(percent))]
		for _, p := range few {
			if p >= 0 {
				sum, known = sum+float64(p), known+1
			}
		}
		out, percent = append(out, math.Round(sum/known)), percent[len(few):] // NaN of 0/0
	}
	return out
}

// noLoad says why nothing is known of the load of a machine.
func noLoad(v clusters.ClusterView, id loom.NodeID) string {
	for _, h := range v.Health.Nodes {
		switch {
		case h.Node != id:
		case h.Status == loom.HealthOff:
			return "No load recorded: checks are off."
		case h.Status.Silent():
			return "No load recorded: the machine does not answer."
		case !h.CheckedAt.IsZero() && h.Load == loom.NoLoad:
			return "No load recorded: the machine does not report it."
		}
	}
	return "No load recorded yet. Loom records it every 5 minutes."
}
