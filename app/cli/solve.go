package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"loom/app/loom"
	"loom/app/wiring"
	"loom/solver"
)

type solveCmd struct {
	document
	Batch bool `help:"Read one problem per line and print one answer per line."`
}

// Run prints what the solver answers to a template and a request: one problem, or
// with --batch one per line. It opens no database and needs no server.
func (c *solveCmd) Run(ctx context.Context, in io.Reader, e *wiring.Environment) error {
	if c.Batch {
		if c.File != "" && c.File != "-" {
			file, err := os.Open(c.File)
			if err != nil {
				return &exitStatus{exitUsage, err}
			}
			defer func() { _ = file.Close() }()
			in = file
		}
		return solveBatch(ctx, in, e.Out)
	}
	body, name, err := c.read(in)
	if err != nil {
		return err
	}
	q, err := readQuestion(body)
	if err != nil {
		return &exitStatus{exitUsage, fmt.Errorf("%s: %w", name, err)}
	}
	answer, err := q.answer(ctx)
	if err != nil {
		return err
	}
	if err := writeAnswer(e.Out, answer); err != nil {
		return err
	}
	if _, no := answer.(*solveNo); no {
		return &exitStatus{code: exitNo}
	}
	return nil
}

// solveBatch answers each line in its own line. A line that cannot be read gets
// BAD_REQUEST as its answer, so that answers stay beside their questions.
func solveBatch(ctx context.Context, in io.Reader, out io.Writer) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read problems: %w", err)
		}
		if line = bytes.TrimRight(line, "\r\n"); err != nil && len(bytes.TrimSpace(line)) == 0 {
			return w.Flush()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var answer any
		q, bad := readQuestion(line)
		if bad == nil {
			if answer, bad = q.answer(ctx); bad != nil {
				return bad
			}
		} else {
			answer = refusedRequest(bad)
		}
		if err := writeAnswer(w, answer); err != nil {
			return err
		}
		// Whoever writes one problem at a time waits for its answer.
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if err != nil {
			return w.Flush()
		}
	}
}

func writeAnswer(w io.Writer, answer any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(answer)
}

// answer solves the question within its time. The error is for trouble of the
// program itself: too little time is an answer.
func (q *question) answer(ctx context.Context) (any, error) {
	limited, stop := context.WithTimeout(ctx, q.limit)
	defer stop()
	answer, err := q.solve(limited)
	if err == nil {
		return answer, nil
	}
	e := loom.AsError(err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case e.Kind == loom.Unavailable:
		return q.no(codeTimeout, []loom.Reason{{Code: codeTimeout, ID: "limit_ms", Message: "The search was stopped after " + q.limit.String() + ": " + strings.TrimPrefix(e.Message, codeTimeout+": ")}}, nil, nil), nil
	case e.Kind == loom.Invalid:
		return q.no(codeBadRequest, []loom.Reason{{Code: codeBadRequest, ID: "request", Message: e.Message}}, nil, nil), nil
	}
	return nil, err
}

const (
	codeTimeout    = "TIMEOUT"
	codeBadRequest = "BAD_REQUEST"
	// solveLimit is the time for a problem that names none.
	solveLimit = 30 * time.Second
)

func (q *question) solve(ctx context.Context) (any, error) {
	if len(q.cluster.Nodes) > 0 {
		return q.solveCluster(ctx)
	}
	_, checks := solver.NewProblem(q.input)
	if q.input.Machines <= 0 {
		text := "request.numMachines is missing; say how many nodes."
		if q.machines != nil {
			text = fmt.Sprintf("request.numMachines is %d; a cluster has at least 1 node.", q.input.Machines)
		}
		reasons := []loom.Reason{{Code: codeBadRequest, ID: "M", Message: text}}
		unsat := &loom.Unsat{Code: codeBadRequest, Reasons: reasons}
		sizes, err := q.sizes(ctx)
		if err != nil {
			return nil, err
		}
		if checks != nil {
			unsat.Reasons = append(reasons, checks.Reasons...)
		} else if sizes != nil {
			low, high := q.input.Template.Constraints.Size.Bounds()
			within := loom.SizeRange{Min: max(sizes.Min, low), Max: min(sizes.Max, high)}
			if within.Min <= within.Max {
				unsat.Sizes = &within
			}
		}
		return q.no(codeBadRequest, unsat.Reasons, sizes, solver.Suggest(ctx, q.input, unsat)), nil
	}
	_, layout, unsat, err := solver.Create(ctx, q.input)
	if err != nil {
		return nil, err
	}
	if unsat != nil {
		sizes, err := q.sizes(ctx)
		if err != nil {
			return nil, err
		}
		return q.no(unsat.Code, q.together(unsat), sizes, unsat.Suggestions), nil
	}
	yes := &solveYes{Solvable: true, Layouts: layout, Nodes: []solver.Node{}}
	number := loom.FirstNodeNumber
	for _, g := range layout {
		for range g.Count {
			yes.Nodes = append(yes.Nodes, solver.Node{ID: fmt.Sprint(number), NodeLayout: g.NodeLayout})
			number++
		}
	}
	return yes, q.setRange(ctx, yes)
}

// setRange fills in the range of a yes; that it took too long changes no answer.
func (q *question) setRange(ctx context.Context, yes *solveYes) error {
	sizes, err := q.sizes(ctx)
	if err != nil && !errors.Is(err, loom.Unavailable) {
		return err
	}
	yes.Range = newSolveRange(sizes)
	return nil
}

func (q *question) solveCluster(ctx context.Context) (any, error) {
	out, unsat, err := solver.Alter(ctx, q.cluster, q.add, q.remove)
	if err != nil {
		return nil, err
	}
	if bad := q.mismatch(); bad != nil {
		if unsat == nil {
			unsat = &loom.Unsat{}
		}
		unsat.Reasons = append([]loom.Reason{*bad}, unsat.Reasons...)
		var help []loom.Suggestion
		if len(unsat.Reasons) == 1 {
			// All else is well.
			n := len(q.cluster.Nodes)
			help = []loom.Suggestion{{Label: fmt.Sprintf("Use %d nodes, as there are", n), Machines: n}}
		}
		return q.no(bad.Code, q.together(unsat), nil, help), nil
	}
	if unsat != nil {
		sizes, err := q.sizes(ctx)
		if err != nil {
			return nil, err
		}
		return q.no(unsat.Code, q.together(unsat), sizes, solver.SuggestChange(ctx, q.cluster, q.add, q.remove, unsat)), nil
	}
	yes := &solveYes{Solvable: true, Layouts: out.Layout, Nodes: q.asGiven(out.Nodes)}
	return yes, q.setRange(ctx, yes)
}

// mismatch is what the request says about the cluster and is not so.
func (q *question) mismatch() *loom.Reason {
	have := len(q.cluster.Nodes)
	if q.machines != nil && *q.machines != have {
		return &loom.Reason{Code: codeBadRequest, ID: "M", Message: fmt.Sprintf(
			"request.numMachines is %d, but nodes has %d; leave numMachines out, since no node is added or removed here.", *q.machines, have)}
	}
	return nil
}

// sizes is the range of machine counts that services and layout constraints allow
// for the services asked for, or those of the cluster after the change; nil where
// none works.
func (q *question) sizes(ctx context.Context) (*loom.SizeRange, error) {
	in := q.input
	if len(q.cluster.Nodes) > 0 {
		in = q.inputAfter()
	}
	p, unsat := solver.NewProblem(in)
	if unsat != nil {
		return nil, nil
	}
	p.Size = loom.SizeRange{Min: 1, Max: loom.Unlimited}
	sizes, ok, err := solver.Sizes(ctx, p)
	if err != nil || !ok {
		return nil, err
	}
	return &sizes, nil
}
