package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"loom/app/api/wire"
	"loom/app/httpx"
	"loom/app/loom"
)

// serviceJournal gives what a service wrote on a node: its last lines as JSON or text, or
// with Accept: text/event-stream also those that come.
func (a *api) serviceJournal(w http.ResponseWriter, r *http.Request, actor loom.Actor) error {
	id, err := clusterID(r)
	if err != nil {
		return err
	}
	j := loom.Journal{Cluster: id, Node: loom.NodeID(strings.ToLower(r.PathValue("nodeId"))), Service: r.PathValue("service"), Lines: 100}
	if r.URL.Query().Has("lines") {
		if j.Lines, err = queryInt(r, "lines"); err != nil {
			return err
		}
	}
	w.Header().Add("Vary", "Accept")
	media := accepted(r, mediaJSON, mediaText, mediaStream)
	j.Follow = media == mediaStream
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", media)
		return a.Fleet.CheckJournal(r.Context(), actor, j)
	}
	if j.Follow {
		return a.followJournal(w, r, actor, j)
	}
	if j.ID, err = a.Fleet.OpenJournal(r.Context(), actor, j); err != nil {
		return err
	}
	end, lines, err := a.wholeJournal(r, actor, j.ID)
	switch {
	case err != nil:
		return err
	case len(lines) == 0 && end != "":
		return loom.NewError(loom.Unavailable, "%s", end)
	case media == mediaText:
		beginText(w)
		for _, l := range lines {
			if l.Skipped > 0 {
				l.Text = fmt.Sprintf("[%d lines skipped]", l.Skipped)
			}
			if _, err := fmt.Fprintln(w, loom.PlainText(l.Text)); err != nil {
				return nil // the client is gone
			}
		}
		return nil
	}
	out := wire.Journal{Lines: make([]wire.JournalLine, len(lines)), End: end}
	for i, l := range lines {
		out.Lines[i] = wire.NewJournalLine(l)
	}
	return answer(w, r, out)
}

// wholeJournal reads a journal to its end, and returns what went wrong.
func (a *api) wholeJournal(r *http.Request, actor loom.Actor, id loom.JournalID) (end string, all []loom.JournalLine, err error) {
	wake, stop := a.Hub.FollowJournal(id)
	defer stop()
	for {
		j, lines, err := a.Fleet.Journal(r.Context(), actor, id, len(all), logChunk)
		if err != nil {
			return "", nil, err
		}
		if all = append(all, lines...); len(lines) == logChunk {
			continue
		}
		if j.Ended {
			return j.Message, all, nil
		}
		select {
		case <-r.Context().Done():
			return "", nil, r.Context().Err()
		case <-wake:
		}
	}
}

// followJournal streams a journal. The id of an event is that of the journal and the number of
// the line, by which a reader that was away goes on while the journal is open.
func (a *api) followJournal(w http.ResponseWriter, r *http.Request, actor loom.Actor, j loom.Journal) error {
	after, again := 0, false
	if id, seq, ok := strings.Cut(httpx.Cursor(r), "."); ok {
		before, _, err := a.Fleet.Journal(r.Context(), actor, loom.JournalID(id), 0, 0)
		n, numErr := strconv.ParseInt(seq, 10, 32)
		if again = err == nil && numErr == nil && n >= 0 && !before.Ended && before.Cluster == j.Cluster && before.Node == j.Node && before.Service == j.Service; again {
			j, after = before, int(n)
		}
	}
	if !again {
		var err error
		if j.ID, err = a.Fleet.OpenJournal(r.Context(), actor, j); err != nil {
			return err
		}
	}
	signals, err := a.Hub.Subscribe(r.Context(), actor.Tenant, []string{"cluster:" + j.Cluster.String()}, "")
	if err != nil {
		return err
	}
	defer signals.Close()
	wake, stop := a.Hub.FollowJournal(j.ID)
	defer stop()
	f := follower{api: a, r: r, actor: actor, signals: signals}
	if f.stream, err = httpx.NewStream(w, r); err != nil {
		return err
	}
	may := func(now loom.Actor) error { // every 10 s; it also says that somebody reads
		_, _, err := a.Fleet.Journal(r.Context(), now, j.ID, 0, 0)
		return err
	}
	f.loop(wake, 0, may, func() (time.Duration, bool) {
		ended, err := f.sendJournal(j.ID, &after)
		return 0, ended || err != nil
	})
	return nil
}

// sendJournal sends the lines of a journal after one, and its end.
func (f *follower) sendJournal(id loom.JournalID, after *int) (ended bool, err error) {
	for {
		j, lines, err := f.Fleet.Journal(f.r.Context(), f.actor, id, *after, logChunk)
		if err != nil {
			return f.fail(err)
		}
		for _, l := range lines {
			event := "line"
			if l.Skipped > 0 {
				event = "gap"
			}
			if err := f.stream.Send(fmt.Sprintf("%s.%d", id, l.Seq), event, wire.NewJournalLine(l)); err != nil {
				return true, err
			}
			*after = l.Seq
		}
		switch {
		case len(lines) == logChunk:
		case j.Ended:
			return true, f.stream.Send("", "end", map[string]string{"reason": "done", "message": j.Message})
		default:
			return false, nil
		}
	}
}
