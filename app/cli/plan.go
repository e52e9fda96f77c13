package cli

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/planner"
)

// planYes and planNo are the two answers of loom plan.
type planYes struct {
	Action   loom.ClusterAction `json:"action"`
	Tasks    []planTask         `json:"tasks"`
	Gates    []planGate         `json:"gates"`
	Edges    [][2]int           `json:"edges"`
	Critical []int              `json:"critical_path"`
	// Expected is there only where durations and workers were given.
	Expected *float64 `json:"expected_seconds,omitempty"`
}

type planTask struct {
	ID      int    `json:"id"`
	Node    string `json:"node"`
	Action  string `json:"action"`
	Service string `json:"service"`
	Level   int    `json:"level"`
	Rank    int    `json:"rank"`
}

// planGate says what it joins: the tasks of an action, of one service or of several.
type planGate struct {
	ID      int    `json:"id"`
	Action  string `json:"action,omitempty"`
	Service string `json:"service,omitempty"`
	End     bool   `json:"end,omitempty"`
}

type planNo struct {
	Error    string            `json:"error"`
	Services []string          `json:"services,omitempty"`
	Message  string            `json:"message"`
	Fields   []loom.FieldError `json:"fields,omitempty"`
}

const (
	codeCycle   = "CYCLE"
	codeRefused = "REFUSED"
	// maxContracted bounds the edges that --contract writes out.
	maxContracted = 20_000_000
)

type planCmd struct {
	document
	Contract bool   `help:"Print every edge between tasks, without gates."`
	Format   string `enum:"json,dot,text" default:"json" help:"json, dot or text [json]."`
}

// Validate reports flags that contradict each other.
func (c *planCmd) Validate() error {
	if c.Contract && c.Format != "json" {
		return errors.New("--contract needs --format json")
	}
	return nil
}

// Run prints the tasks of an operation and their order. It opens no database
// and needs no server.
func (c *planCmd) Run(in io.Reader, e *wiring.Environment) error {
	out := e.Out
	body, name, err := c.read(in)
	if err != nil {
		return err
	}
	q, err := readAs(body, name, readPlan)
	if err != nil {
		return err
	}
	plan, err := q.plan()
	if err != nil {
		return refusedPlan(out, err)
	}
	w := bufio.NewWriter(out)
	switch c.Format {
	case "dot":
		_, err = io.WriteString(w, planner.DOTBy(plan, nodeID))
	case "text":
		_, err = io.WriteString(w, planner.TextBy(plan, nodeID))
	default:
		answer := newPlanAnswer(plan)
		answer.Expected = q.expected(plan)
		if c.Contract {
			if err := answer.contract(plan); err != nil {
				return refusedPlan(out, err)
			}
		}
		err = writeAnswer(w, answer)
	}
	return errors.Join(err, w.Flush())
}

// refusedPlan answers that there is no plan; trouble that is nobody's question
// stays an error.
func refusedPlan(out io.Writer, err error) error {
	e := loom.AsError(err)
	if e.Kind != loom.Invalid && e.Kind != loom.NotFound {
		return err
	}
	no := planNo{Error: codeRefused, Message: e.Message, Fields: e.Fields}
	var cycle *planner.CycleError
	if errors.As(err, &cycle) {
		// The path ends where it began.
		no.Error, no.Services = codeCycle, cycle.Path[:len(cycle.Path)-1]
	}
	if err := writeAnswer(out, no); err != nil {
		return err
	}
	return &exitStatus{code: exitNo}
}

func newPlanAnswer(plan loom.Plan) *planYes {
	answer := &planYes{Action: plan.Action, Tasks: make([]planTask, len(plan.Tasks)), Gates: make([]planGate, len(plan.Gates)),
		Edges: make([][2]int, len(plan.Edges)), Critical: []int{}}
	for i, t := range plan.Tasks {
		answer.Tasks[i] = planTask{t.Number, string(t.Node), strings.ToUpper(string(t.Action)), t.Service, t.Level, t.Rank}
		if t.Critical {
			answer.Critical = append(answer.Critical, t.Number)
		}
	}
	for i, g := range plan.Gates {
		answer.Gates[i] = planGate{len(plan.Tasks) + 1 + i, strings.ToUpper(string(g.Action)), g.Service, i == len(plan.Gates)-1}
	}
	for i, e := range plan.Edges {
		answer.Edges[i] = [2]int{e.From, e.To}
	}
	return answer
}

// contract writes gates out as edges between tasks. Invalid when that would be too
// much to be of use.
func (a *planYes) contract(plan loom.Plan) error {
	n := len(plan.Tasks)
	before := map[int][]int{}
	total := len(plan.Edges)
	for _, e := range plan.Edges {
		if e.To > n {
			before[e.To] = append(before[e.To], e.From)
		}
	}
	for _, e := range plan.Edges {
		if e.From > n {
			total += len(before[e.From])
		}
	}
	if total > maxContracted {
		return loom.NewError(loom.Invalid, "This plan has %d edges; at most %d are printed. Drop --contract.", total, maxContracted)
	}
	edges := make([][2]int, 0, total)
	for _, e := range plan.Edges {
		switch {
		case e.From <= n && e.To <= n:
			edges = append(edges, [2]int{e.From, e.To})
		case e.From > n:
			for _, from := range before[e.From] {
				edges = append(edges, [2]int{from, e.To})
			}
		}
	}
	slices.SortFunc(edges, func(x, y [2]int) int { return slices.Compare(x[:], y[:]) })
	a.Edges, a.Gates = slices.Compact(edges), []planGate{}
	return nil
}

// nodeID names nodes as the input does.
func nodeID(t loom.PlanTask) string { return string(t.Node) }
