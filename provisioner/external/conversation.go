package external

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"

	"loom/app/loom"
	"loom/provisioner"
	"loom/provisioner/remote"
)

// maxMachines is how many machines a plugin may list.
const maxMachines = 100_000

// maxTold is how often a plugin is told off for the same thing in one call.
const maxTold = 3

// conversation takes what a plugin says while it runs.
type conversation struct {
	sink     *provisioner.RedactingSink
	redactor *provisioner.Redactor
	tap      func(stream, line string)
	debug    bool
	// alive gets a token whenever something came; broken an error of the sink.
	alive  chan struct{}
	broken chan error

	mu     sync.Mutex
	result *loom.TaskResult
	// unusable says why the result that came cannot be used.
	unusable string
	// facts are those of all state messages; stored is the error of storing them.
	facts      map[string]any
	stored     error
	lastStderr string
	told       map[string]int
	// lists says that machines are asked for, which are those of all messages of that type.
	lists    bool
	machines []loom.TaggedMachine
}

func converse(h *Host, sink loom.Sink, secrets []string) *conversation {
	redactor := provisioner.NewRedactor(secrets...)
	return &conversation{sink: redactor.Sink(sink), redactor: redactor, tap: h.Tap, debug: h.Level == "debug",
		alive: make(chan struct{}, 1), broken: make(chan error, 1), facts: map[string]any{}, told: map[string]int{}}
}

// lively passes reads on and notes each as a sign of life.
type lively struct {
	file *os.File
	seen chan<- struct{}
}

// Read reads.
func (l lively) Read(p []byte) (int, error) {
	n, err := l.file.Read(p)
	select {
	case l.seen <- struct{}{}:
	default:
	}
	return n, err
}

// listen takes the lines of one stream until it ends.
func (c *conversation) listen(stream string, from *os.File, t *throttle) {
	lines := newLineReader(lively{from, c.alive})
	for {
		line, dropped, err := lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.mu.Lock()
				c.warn("read", "its output cannot be read: "+err.Error())
				c.mu.Unlock()
			}
			return
		}
		if c.tap != nil {
			c.tap(stream, string(line))
		}
		c.take(stream, line, dropped)
		t.wait()
	}
}

func (c *conversation) take(stream string, line []byte, dropped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if dropped > 0 {
		c.warn("long", fmt.Sprintf("a line of more than %d bytes was cut short; %d bytes are lost", MaxLine, dropped))
	}
	if stream == "stdout" && dropped == 0 {
		if m, ok := decode(line); ok {
			c.message(m)
			return
		}
	}
	text := clean(strings.TrimSuffix(string(line), "\r"))
	if stream == "stderr" && strings.TrimSpace(text) != "" {
		c.lastStderr = text
	}
	c.log(stream, text)
}

func (c *conversation) message(m message) {
	switch {
	case m.kind == msgMachine && c.lists:
		c.machine(m)
	case c.result != nil || c.unusable != "":
		c.warn("late", fmt.Sprintf("a message of type “%s” came after the result and is ignored", m.kind))
	case m.kind == msgResult && m.wrong != "":
		c.unusable = m.wrong
	case m.wrong != "":
		c.warn("wrong "+m.kind, fmt.Sprintf("a message of type “%s” is ignored: %s", m.kind, m.wrong))
	case m.kind == msgLog:
		c.logMessage(m)
	case m.kind == msgProgress:
		c.progress(m)
	case m.kind == msgState:
		c.state(m.facts)
	case m.kind == msgSecret:
		c.redactor.Add(m.text)
	case m.kind == msgHeartbeat:
	case m.kind == msgResult:
		c.hide(m.outcome.Result)
		if c.lists && m.outcome.Status == 0 && m.machines != len(c.machines) {
			c.unusable = fmt.Sprintf("it lists %d machines and says in “machines” that there are %d", len(c.machines), m.machines)
			return
		}
		result := m.outcome
		c.result = &result
	default:
		c.warn("unknown "+m.kind, fmt.Sprintf("messages of type “%.40s” are not known and ignored", m.kind))
	}
}

// machine takes a machine of a list. A list that may lack one is none: it would seem to be
// gone.
func (c *conversation) machine(m message) {
	switch {
	case m.wrong != "":
		c.result, c.unusable = nil, "a machine cannot be read: "+m.wrong
	case c.result != nil:
		c.result, c.unusable = nil, "a machine came after the result"
	case len(c.machines) == maxMachines:
		c.unusable = fmt.Sprintf("it lists more than %d machines", maxMachines)
	default:
		c.machines = append(c.machines, m.machine)
	}
}

func (c *conversation) logMessage(m message) {
	stream, text := "loom", m.text
	if m.stream == "stdout" || m.stream == "stderr" {
		stream = m.stream
	}
	switch m.level {
	case "debug":
		if !c.debug {
			return
		}
	case "warn", "warning":
		text = "warning: " + text
	case "error":
		text = "error: " + text
	}
	for line := range strings.Lines(text) {
		c.log(stream, strings.TrimRight(line, "\r\n"))
	}
}

func (c *conversation) progress(m message) {
	text := m.text
	if m.phase != "" {
		text = m.phase + ": " + text
	}
	if m.percent >= 0 {
		text += fmt.Sprintf(" (%.0f %%)", m.percent)
	}
	for line := range strings.Lines(text) {
		c.log("loom", strings.TrimRight(line, "\r\n"))
	}
}

// state stores facts at once; a machine's id must survive whatever comes next.
func (c *conversation) state(facts map[string]any) {
	c.hide(facts)
	maps.Copy(c.facts, facts)
	if c.stored != nil {
		return
	}
	given := maps.Clone(facts)
	for name := range given {
		if loom.FixedConfigKey(name) {
			delete(given, name)
			c.warn("fixed "+name, fmt.Sprintf("the state “%s” is refused: that name belongs to Loom", name))
		}
	}
	if c.stored = c.sink.Fact(given); c.stored != nil {
		c.broken <- c.stored
	}
}

// hide keeps the secrets among facts out of what is said from now on.
func (c *conversation) hide(facts map[string]any) {
	_, hidden := loom.SplitFacts(facts)
	c.redactor.Add(textsIn(hidden)...)
}

func textsIn(value any) (found []string) {
	switch v := value.(type) {
	case string:
		return []string{v}
	case map[string]any:
		for _, inner := range v {
			found = append(found, textsIn(inner)...)
		}
	case []any:
		for _, inner := range v {
			found = append(found, textsIn(inner)...)
		}
	}
	return found
}

// log passes a line on, in parts that a log can hold.
func (c *conversation) log(stream, text string) {
	if len(text) <= remote.MaxLine/2 {
		c.sink.Log(stream, text)
		return
	}
	// Hidden as a whole, lest a secret lies across two parts.
	for _, part := range pieces(c.redactor.Text(text)) {
		c.sink.Log(stream, part)
	}
}

// warn says a few times what a plugin does wrong.
func (c *conversation) warn(about, text string) {
	most := maxTold
	if strings.HasPrefix(about, "unknown ") {
		most = 1
	}
	if len(c.told) > 100 { // as many types of messages as somebody likes
		return
	}
	if c.told[about]++; c.told[about] <= most {
		c.sink.Log("loom", "warning: the plugin: "+text)
	}
}
