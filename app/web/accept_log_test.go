package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"loom/app/execution"
	"loom/app/loom"
	"loom/app/testkit"
	"loom/views/route"
)

// acceptLines is how many lines the long log has.
const acceptLines = 100_000

// longLog is the log of an attempt that is still written.
type longLog struct {
	*clusterWorld
	task loom.TaskRef
	row  int64
	log  *execution.Log
	last int
	// seqs are the numbers of the lines when it was opened: one is set aside for what
	// is said where a log is cut.
	seqs []int
}

// newLongLog writes a log as a provisioner does. Its lines are their own numbers, short
// enough that nothing of them is left out.
func newLongLog(t *testing.T) *longLog {
	t.Helper()
	l := &longLog{clusterWorld: newClusterWorld(t)}
	op := l.create("busy", 2)
	l.runSome(op, 1, 1)
	l.task = loom.TaskRef{Operation: op, Number: 2}
	l.must(l.db.Get(&l.row, `SELECT id FROM tasks WHERE cluster_id = $1 AND number = 2 AND NOT gate`, int64(op.Cluster)))
	l.log = l.ops.Log(execution.AttemptKey{Task: loom.TaskID(l.row), Attempt: 1})
	t.Cleanup(l.log.Close)
	l.grow(acceptLines)
	l.must(l.db.Select(&l.seqs, `SELECT seq FROM task_logs WHERE task_id = $1 ORDER BY seq`, l.row))
	return l
}

// grow writes more lines and waits until they are stored.
func (l *longLog) grow(n int) {
	l.t.Helper()
	var text strings.Builder
	for range n {
		l.last++
		fmt.Fprintf(&text, "%d\n", l.last)
	}
	l.log.Add("stdout", text.String())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		var stored int
		l.must(l.db.Get(&stored, `SELECT count(*) FROM task_logs WHERE task_id = $1`, l.row))
		if stored == l.last {
			return
		}
		if time.Now().After(deadline) {
			l.t.Fatalf("%d of %d lines are stored", stored, l.last)
		}
	}
}

var logRow = regexp.MustCompile(`id="L(\d+)"`)

// rows gives the numbers of the lines in an answer.
func rows(a clusterAnswer) []int {
	var out []int
	for _, m := range logRow.FindAllStringSubmatch(a.Body, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			a.t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}

// follow demands that rows are those that end before the one of an index, and gives
// the index of the first.
func (l *longLog) follow(found []int, end int) int {
	l.t.Helper()
	if len(found) == 0 || len(found) > end || !slices.Equal(found, l.seqs[end-len(found):end]) {
		l.t.Fatalf("%d rows, %v…, are not those before the row %d", len(found), found[:min(3, len(found))], end)
	}
	return end - len(found)
}

// growing is a reader that lets the log grow while it reads.
type growing struct {
	*httptest.ResponseRecorder
	log  *longLog
	next int
}

func (g *growing) Write(p []byte) (int, error) {
	n, err := g.ResponseRecorder.Write(p)
	if g.Body.Len() >= g.next && g.next > 0 {
		g.next += 200_000
		if g.next > 700_000 {
			g.next = 0
		}
		g.log.grow(400)
	}
	return n, err
}

// Unwrap gives what is behind.
func (g *growing) Unwrap() http.ResponseWriter { return g.ResponseRecorder }

// TestLongLogOpensAtItsTail: a log of 100,000 lines opens as a page of bounded size
// that shows the end, all lines before can be reached from there, each once, and by
// links alone; the raw text is whole, also where the log grows while it is read.
func TestLongLogOpensAtItsTail(t *testing.T) {
	t.Parallel()
	l := newLongLog(t)
	page := l.get("ana", route.Task(l.task)).is(http.StatusOK, "Load 1,000 earlier")
	first := l.follow(rows(page), acceptLines)
	if first != acceptLines-500 {
		t.Errorf("the page begins at row %d", first)
	}
	if len(page.Body) > 400_000 {
		t.Errorf("the page has %d bytes", len(page.Body))
	}

	// Scripts put the rows before those on the page, again and again.
	at := html.UnescapeString(logAttribute(t, page.Body, `data-log-earlier="`))
	for at != "" {
		part := l.part("ana", at, "").is(http.StatusOK)
		if len(part.Body) > 600_000 {
			t.Fatalf("a part has %d bytes", len(part.Body))
		}
		first = l.follow(rows(part), first)
		at = part.Header.Get("Loom-Earlier-Rows")
	}
	if first != 0 {
		t.Errorf("the earliest row to be loaded is %d", first)
	}

	// Without them, links lead from page to page, from the middle on here.
	middle := l.get("ana", route.TaskAttempt(l.task, 1)+"&lines=3200").is(http.StatusOK, "Later lines")
	for first = rows(middle)[0] - 1; first > 0; {
		var to string
		for _, link := range testkit.Links(t, middle.Body) {
			if strings.Contains(link, "before="+strconv.Itoa(l.seqs[first])) {
				to = link
			}
		}
		if to == "" {
			t.Fatalf("no link to the lines before %d", l.seqs[first])
		}
		middle = l.get("ana", to).is(http.StatusOK)
		first = l.follow(rows(middle), first)
	}
	l.get("ana", route.TaskAttempt(l.task, 1)+"&find=54321").is(http.StatusOK, fmt.Sprintf("lines=%[1]d#L%[1]d", l.seqs[54_320]))

	g := &growing{ResponseRecorder: httptest.NewRecorder(), log: l, next: 100_000}
	r := httptest.NewRequest(http.MethodGet, route.TaskLogRaw(l.task, 1)+"&download=1", nil)
	r.RemoteAddr = "127.0.0.1:4711"
	r.Header.Set("Cookie", "loom-dev="+l.cookies["ana"])
	l.handler.ServeHTTP(g, r)
	if l.last <= acceptLines {
		t.Fatal("the log did not grow")
	}
	read := strings.Split(strings.TrimSuffix(g.Body.String(), "\n"), "\n")
	for i, line := range read {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d of the download is %q", i+1, line)
		}
	}
	if len(read) != l.last {
		t.Errorf("the download has %d lines, the log %d", len(read), l.last)
	}
}

// logAttribute gives the text between a beginning and the next quote.
func logAttribute(t *testing.T, body, begin string) string {
	t.Helper()
	_, rest, found := strings.Cut(body, begin)
	if !found {
		t.Fatalf("the page lacks %s", begin)
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
