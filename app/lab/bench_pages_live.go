package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"loom/app/loom"
)

const (
	// livePerBrowser is how many live pages one browser has open: a session has 20
	// streams. browserCalls is how many requests a browser sends at once to a host.
	livePerBrowser = 10
	browserCalls   = 6
)

// paceTasksPerNode is how many tasks a node of the template "mock-pace" has.
const paceTasksPerNode = 13

// fetched is when a page asked for a part of itself and had it.
type fetched struct{ asked, had time.Time }

// livePart is a part of a page that is fetched again upon signals of its topics.
type livePart struct {
	id, path string
	topics   []string
}

var (
	eventsAt   = regexp.MustCompile(`data-events="([^"]+)"`)
	cursorAt   = regexp.MustCompile(`data-cursor="([^"]+)"`)
	liveTag    = regexp.MustCompile(`<[a-z]+ [^>]*data-live="([^"]+)"[^>]*>`)
	liveID     = regexp.MustCompile(` id="([^"]+)"`)
	livePathAt = regexp.MustCompile(` hx-get="([^"]+)"`)
)

// livePage reads how a page lives: the address of its stream and its parts.
func livePage(body string) (stream string, parts []livePart, err error) {
	events := eventsAt.FindStringSubmatch(body)
	if events == nil {
		return "", nil, errors.New("the page does not live")
	}
	stream = html.UnescapeString(events[1])
	if cursor := cursorAt.FindStringSubmatch(body); cursor != nil {
		stream += "&after=" + html.UnescapeString(cursor[1])
	}
	for _, tag := range liveTag.FindAllStringSubmatch(body, -1) {
		path, id := livePathAt.FindStringSubmatch(tag[0]), liveID.FindStringSubmatch(tag[0])
		if path == nil || id == nil {
			continue
		}
		parts = append(parts, livePart{id[1], html.UnescapeString(path[1]), strings.Fields(html.UnescapeString(tag[1]))})
	}
	if len(parts) == 0 {
		return "", nil, errors.New("the page has no parts that live")
	}
	return stream, parts, nil
}

// watch does what a browser does with an open page until the stream ends, and
// notes each fetch of its parts.
func (v *visitor) watch(ctx context.Context, path string) ([]fetched, error) {
	body, err := v.send(ctx, http.MethodGet, path, nil, false)
	if err != nil {
		return nil, err
	}
	stream, parts, err := livePage(string(body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+stream, nil)
	if err != nil {
		return nil, err
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", stream, answer.Status)
	}
	seen := &partsSeen{}
	var fetching sync.WaitGroup
	due := make([]chan struct{}, len(parts))
	for i, p := range parts {
		due[i] = make(chan struct{}, 1)
		fetching.Go(func() { v.follow(ctx, p, due[i], seen) })
	}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		topic, isEvent := strings.CutPrefix(lines.Text(), "event: ")
		if !isEvent || topic == "end" {
			continue
		}
		for i, p := range parts {
			if topic != "reset" && !slices.Contains(p.topics, topic) {
				continue
			}
			select {
			case due[i] <- struct{}{}:
			default: // it is fetched again anyway
			}
		}
	}
	for i := range due {
		close(due[i])
	}
	fetching.Wait()
	if ctx.Err() != nil {
		return seen.fetches, nil
	}
	return seen.fetches, errors.Join(seen.err, errors.New("the stream of "+path+" ended early"))
}

// partsSeen are the fetches of the parts of one page that show each task.
type partsSeen struct {
	mu      sync.Mutex
	fetches []fetched
	err     error
}

// follow fetches a part whenever it is due, as a browser does: the parts of a page side
// by side, and each again when the signal came while it was on its way.
func (v *visitor) follow(ctx context.Context, p livePart, due <-chan struct{}, seen *partsSeen) {
	shows := slices.ContainsFunc(p.topics, func(topic string) bool { return strings.HasPrefix(topic, "op:") })
	for range due {
		f := fetched{asked: time.Now()}
		err := v.part(ctx, p)
		f.had = time.Now()
		seen.mu.Lock()
		switch {
		case err != nil && ctx.Err() == nil:
			seen.err = errors.Join(seen.err, err)
		case err == nil && shows:
			seen.fetches = append(seen.fetches, f)
		}
		seen.mu.Unlock()
	}
}

func (v *visitor) part(ctx context.Context, p livePart) error {
	ctx, cancel := context.WithTimeout(ctx, v.patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url+p.path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("HX-Request", "true")
	r.Header.Set("HX-Target", p.id)
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := v.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", p.path, answer.Status)
	}
	return nil
}

// measureLive opens many pages of one running operation and says what they cost
// and how late they show each change.
func (b *benchInstance) measureLive(ctx context.Context, scale benchScale) error {
	id, err := b.create(ctx, "mock-pace", max(1, scale.live*5/paceTasksPerNode))
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	browsers, err := b.visitors(ctx, (scale.live+livePerBrowser-1)/livePerBrowser)
	if err != nil {
		return err
	}
	for _, v := range browsers {
		v.client.Transport.(*http.Transport).MaxConnsPerHost = livePerBrowser + browserCalls
	}
	seen := make([][]fetched, scale.live)
	failed := make([]error, scale.live)
	var pages sync.WaitGroup
	began := time.Now()
	before, err := cpuOf(b.processes[0])
	if err != nil {
		return err
	}
	for i := range scale.live {
		path := "/clusters/" + id.String()
		if i%2 == 0 {
			path += "/operations/1"
		}
		pages.Go(func() {
			if seen[i], failed[i] = browsers[i/livePerBrowser].watch(watching, path); watching.Err() != nil {
				failed[i] = nil // it was to end
			}
		})
	}
	err = b.until(ctx, id, 1)
	took := time.Since(began)
	after, cpuErr := cpuOf(b.processes[0])
	// The last change is shown within the pace of signals, or too late.
	select {
	case <-ctx.Done():
	case <-time.After(3 * time.Second):
	}
	stop()
	pages.Wait()
	if err := errors.Join(append(failed, err, cpuErr)...); err != nil {
		return err
	}
	plan, times, err := b.times(ctx, loom.OperationRef{Cluster: id, Number: 1})
	if err != nil {
		return err
	}
	var late []time.Duration
	never := 0
	for _, fetches := range seen {
		slices.SortFunc(fetches, func(a, b fetched) int { return a.asked.Compare(b.asked) })
		for _, change := range times {
			i := slices.IndexFunc(fetches, func(f fetched) bool { return f.asked.After(change.ended) })
			switch {
			case change.ended.Before(began.Add(2 * time.Second)): // the page was just being opened
			case i < 0:
				never++
			default:
				late = append(late, fetches[i].had.Sub(change.ended))
			}
		}
	}
	slices.Sort(late)
	if len(late) == 0 {
		return errors.New("no page saw a change")
	}
	fmt.Fprintf(b.Out, "\nLive pages: %d open, half of them the cluster and half the operation of %d tasks, which took %s\n\n", scale.live, len(plan.Tasks), seconds(took))
	fmt.Fprintf(b.Out, "  share of one core of the web process   %.0f %%\n", 100*float64(after-before)/float64(took))
	fmt.Fprintf(b.Out, "  a change is on the page after          p50 %s, p99 %s, at most %s\n", seconds(percentile(late, 50)), seconds(percentile(late, 99)), seconds(late[len(late)-1]))
	fmt.Fprintf(b.Out, "  changes never shown                    %d\n", never)
	return nil
}
