package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"loom/app/api/wire"
	"loom/app/clusters"
	"loom/app/httpx"
	"loom/app/loom"
)

const (
	// severalPace is the shortest time between two looks for new lines of a log that
	// is followed, settlePace that between two while some lines are not settled.
	severalPace = 250 * time.Millisecond
	settlePace  = 100 * time.Millisecond
)

// operationLog gives the lines of all tasks of an operation in the order in which
// they were stored, as taskLog gives those of one.
func (a *api) operationLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	ref, err := operationRef(r)
	if err != nil {
		return err
	}
	return a.severalLog(w, r, actor, clusters.LogSource{Operation: ref})
}

// nodeLog gives the lines of all tasks of a node, through all operations.
func (a *api) nodeLog(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	return a.severalLog(w, r, actor, clusters.LogSource{Operation: loom.OperationRef{Cluster: id}, Node: loom.NodeID(r.PathValue("nodeId"))})
}

func (a *api) severalLog(w http.ResponseWriter, r *http.Request, actor loom.Actor, of clusters.LogSource) error {
	var in clusters.InterleavedInput
	var err error
	if in.Attempt, err = queryInt(r, "attempt"); err != nil {
		return err
	}
	if in.Levels, err = oneOf(r, "level", logLevels); err != nil {
		return err
	}
	page, err := readPage(r, true)
	if err != nil {
		return err
	}
	in.After = page.After
	raw, err := rawText(r)
	if err != nil {
		return err
	}
	w.Header().Add("Vary", "Accept")
	switch accepted(r, mediaJSON, mediaText, mediaStream) {
	case mediaStream:
		in.After = httpx.Cursor(r)
		return a.followSeveral(w, r, actor, of, in)
	case mediaText:
		return a.rawSeveral(w, r, actor, of, in, raw)
	}
	if in.Limit = page.Limit; in.Limit == 0 {
		in.Limit = loom.DefaultPageLimit
	}
	log, err := a.Clusters.Interleaved(r.Context(), actor, of, in)
	if err != nil {
		return err
	}
	lines := make([]wire.Line, len(log.Lines))
	for i, l := range log.Lines {
		lines[i] = wire.NewLineOfTask(l.LogLine)
	}
	// There is a next page also where it is still empty, as long as lines may come.
	if n := len(log.Lines); n > 0 && (log.More || log.Waiting || !log.Over) {
		linkPages(w, r, log.Lines[n-1].Cursor, "")
	}
	return answer(w, r, lines)
}

// rawSeveral sends the text of all lines that are stored by now, each behind its
// task and attempt.
func (a *api) rawSeveral(w http.ResponseWriter, r *http.Request, actor loom.Actor, of clusters.LogSource, in clusters.InterleavedInput, raw func(text string) string) error {
	in.Limit = logChunk
	for first := true; ; first = false {
		log, err := a.Clusters.Interleaved(r.Context(), actor, of, in)
		if err != nil {
			if !first {
				a.cutOff(r, err)
			}
			return err
		}
		if first {
			beginText(w)
		}
		for _, l := range log.Lines {
			in.After = l.Cursor
			if _, err := fmt.Fprintf(w, "%s/%d %s\n", l.Task, l.Attempt, raw(l.Text)); err != nil {
				return nil
			}
		}
		if log.More {
			continue
		}
		if in.Whole || !log.Waiting {
			return nil
		}
		in.Whole = true // what is left: nobody goes on from here
	}
}

// followSeveral streams the lines that are stored and those that come, to the end
// of the operation or, for a node, of what happens to its cluster. The id of an
// event is the cursor of its line.
func (a *api) followSeveral(w http.ResponseWriter, r *http.Request, actor loom.Actor, of clusters.LogSource, in clusters.InterleavedInput) error {
	probe := in
	probe.Limit = 1
	if _, err := a.Clusters.Interleaved(r.Context(), actor, of, probe); err != nil {
		return err
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", mediaStream)
		return nil
	}
	topic := fmt.Sprintf("op:%s/%d", of.Operation.Cluster, of.Operation.Number)
	if of.Node != "" {
		topic = "cluster:" + of.Operation.Cluster.String()
	}
	wake, stop := a.Hub.FollowLogs()
	defer stop()
	signals, err := a.Hub.Subscribe(r.Context(), actor.Tenant, []string{topic}, "")
	if err != nil {
		return err
	}
	defer signals.Close()
	f := severalFollower{follower: follower{api: a, r: r, actor: actor, signals: signals, pacer: newPacer()}, of: of, in: in}
	f.in.Limit = logChunk
	kept, err := a.Clusters.KeepsCursor(r.Context(), actor, of, in.After)
	if err != nil {
		return err
	}
	if f.stream, err = httpx.NewStream(w, r); err != nil {
		return err
	}
	if !kept {
		f.in.After = ""
		if f.stream.Send("", "reset", struct{}{}) != nil {
			return nil
		}
	}
	f.run(wake)
	return nil
}

// severalFollower sends the lines of several tasks to one client.
type severalFollower struct {
	follower
	of clusters.LogSource
	in clusters.InterleavedInput
}

// run ends with the log, the client or the process. Lines of the whole installation
// wake it: it looks at most once per pace.
func (f *severalFollower) run(wake <-chan struct{}) {
	may := func(now loom.Actor) error {
		return f.Clusters.MaySeeTopic(f.r.Context(), now, "cluster:"+f.of.Operation.Cluster.String())
	}
	f.loop(wake, severalPace, may, func() (time.Duration, bool) {
		waiting, ended := f.sendNew()
		if waiting {
			return settlePace, ended
		}
		return 0, ended
	})
}

// sendNew sends all lines that can be read and says whether some could not be yet,
// and whether the stream has ended.
func (f *severalFollower) sendNew() (waiting, ended bool) {
	f.begin()
	for {
		if f.tooSlow(f.patience) {
			if err := f.skip(); err != nil {
				f.fail(err) //nolint:errcheck // it said what there is to say
				return false, true
			}
		}
		log, err := f.Clusters.Interleaved(f.r.Context(), f.actor, f.of, f.in)
		if err != nil {
			f.fail(err) //nolint:errcheck // it said what there is to say
			return false, true
		}
		for _, l := range log.Lines {
			if err := f.stream.Send(l.Cursor, "line", wire.NewLineOfTask(l.LogLine)); err != nil {
				f.fail(errors.Join(err, errStreamEnded)) //nolint:errcheck // the client is gone
				return false, true
			}
			f.in.After = l.Cursor
			f.sent(l.Time)
		}
		if !log.More && !log.Waiting { // what waits may have been stored long ago
			f.atEnd()
		}
		switch {
		case log.More:
		case log.Waiting:
			return true, false
		case log.Over:
			f.stream.End("done") //nolint:errcheck // over either way
			return false, true
		default:
			return false, false
		}
	}
}
