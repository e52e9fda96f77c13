package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"loom/app/loom"
)

// Types of messages.
const (
	msgLog       = "log"
	msgProgress  = "progress"
	msgState     = "state"
	msgSecret    = "secret"
	msgHeartbeat = "heartbeat"
	msgResult    = "result"
	msgMachine   = "machine"
)

// maxDepth is how deeply a message may nest.
const maxDepth = 64

// message is one line of a plugin, taken apart.
type message struct {
	kind string
	// text is the msg of log and progress, or the value of secret.
	text, level, stream, phase string
	// percent is -1 when there is none.
	percent float64
	// facts are the result object of state.
	facts map[string]any
	// machine is one of a list; machines is how many a result says that there are, -1 where
	// it does not say.
	machine  loom.TaggedMachine
	machines int
	// outcome is what a result says.
	outcome loom.TaskResult
	// wrong says what is not right with a message of a known type; it is not used
	// then.
	wrong string
}

// decode takes a line apart. ok is false for what is no message: it is a line of
// the log.
func decode(line []byte) (m message, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) < 2 || line[0] != '{' {
		return m, false
	}
	if err := loom.ScanJSON(line, 0); err != nil {
		var head struct {
			Type string `json:"t"`
		}
		if json.Unmarshal(line, &head) != nil || head.Type == "" {
			return m, false
		}
		m.kind, m.wrong = clean(head.Type), loom.AsError(err).Message
		return m, true
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var values map[string]any
	if decoder.Decode(&values) != nil {
		return m, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return m, false
	}
	if m.kind, ok = values["t"].(string); !ok || m.kind == "" {
		return m, false
	}
	m.kind = clean(m.kind)
	if err := scrub(values, 0); err != nil {
		m.wrong = err.Error()
		return m, true
	}
	r := &fields{values: values}
	switch m.kind {
	case msgLog:
		m.text, m.level, m.stream = r.text("msg"), r.text("level"), r.text("stream")
	case msgProgress:
		m.text, m.phase, m.percent = r.text("msg"), r.text("phase"), r.percent()
	case msgState:
		if m.facts = r.object("result"); m.facts == nil {
			r.fail("“result” has to be an object")
		}
		r.facts(m.facts)
	case msgSecret:
		m.text = r.text("value")
	case msgResult:
		m.outcome, m.machines = r.outcome(len(line)), -1
		if n, ok := values["machines"].(json.Number); ok {
			if count, err := strconv.Atoi(n.String()); err == nil {
				m.machines = count
			}
		}
	case msgMachine:
		m.machine = r.machine()
	}
	m.wrong = r.wrong
	return m, true
}

// fields reads the members of one message; the first thing wrong is kept.
type fields struct {
	values map[string]any
	wrong  string
}

func (r *fields) fail(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = fmt.Sprintf(format, args...)
	}
}

// text reads a text; numbers are taken as written.
func (r *fields) text(key string) string {
	switch v := r.values[key].(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	r.fail("“%s” has to be a text, not %s", key, kindOf(r.values[key]))
	return ""
}

func (r *fields) object(key string) map[string]any {
	if r.values[key] == nil {
		return nil
	}
	object, ok := r.values[key].(map[string]any)
	if !ok {
		r.fail("“%s” has to be an object, not %s", key, kindOf(r.values[key]))
	}
	return object
}

// machine reads a machine of a list; what a plugin leaves out it does not say.
func (r *fields) machine() loom.TaggedMachine {
	m := loom.TaggedMachine{ID: r.text("id"), Name: r.text("name"), Node: loom.NodeID(r.text("node")), Key: r.text("key"), Cluster: r.text("cluster"),
		Tenant: loom.TenantID(r.text("tenant")), State: loom.MachineState(r.text("state")), Flavor: r.text("flavor"), Image: r.text("image")}
	if m.ID == "" {
		r.fail("“id” is missing")
	}
	switch addresses := r.values["addresses"].(type) {
	case nil:
	case []any:
		for _, a := range addresses[:min(len(addresses), loom.MaxMachineAddresses)] {
			text, ok := a.(string)
			if !ok {
				r.fail("“addresses” has to hold texts, not %s", kindOf(a))
			}
			m.Addresses = append(m.Addresses, text)
		}
	default:
		r.fail("“addresses” has to be a list, not %s", kindOf(addresses))
	}
	return m
}

func (r *fields) percent() float64 {
	number, ok := r.values["percent"].(json.Number)
	if !ok {
		return -1
	}
	f, err := number.Float64()
	if err != nil || f < 0 {
		return -1
	}
	return min(f, 100)
}

// facts checks what will be stored on the node.
func (r *fields) facts(facts map[string]any) {
	switch id := facts["providerid"].(type) {
	case nil, string:
	case json.Number:
		facts["providerid"] = id.String()
	default:
		r.fail("“providerid” has to be a text, not %s", kindOf(id))
	}
}

func (r *fields) outcome(size int) loom.TaskResult {
	result := loom.TaskResult{Status: r.status(), Message: r.text("message"), Stdout: r.text("stdout"), Stderr: r.text("stderr"),
		Hostname: strings.TrimSpace(r.text("hostname")), Result: r.object("result")}
	if size > MaxResult {
		r.fail("it is longer than %d bytes", MaxResult)
	}
	r.facts(result.Result)
	for kind, value := range r.object("ipaddresses") {
		text, ok := value.(string)
		if !ok {
			r.fail("“ipaddresses.%s” has to be a text, not %s", kind, kindOf(value))
			continue
		}
		if result.Addresses == nil {
			result.Addresses = map[string]string{}
		}
		result.Addresses[kind] = strings.TrimSpace(text)
	}
	switch retryable := r.values["retryable"].(type) {
	case nil:
	case bool:
		result.Retryable = &retryable
	default:
		r.fail("“retryable” has to be true or false, not %s", kindOf(retryable))
	}
	switch keep := r.values["keep_machine"].(type) {
	case nil:
	case bool:
		result.KeepMachine = keep
	default:
		r.fail("“keep_machine” has to be true or false, not %s", kindOf(keep))
	}
	result.RetryAfter = r.seconds("retry_after")
	return result
}

// status reads a number, or one written as a text, as old plugins do.
func (r *fields) status() int {
	text := ""
	switch v := r.values["status"].(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		r.fail("“status” has to be a whole number, 0 for success")
		return 1
	}
	return int(n)
}

func (r *fields) seconds(key string) int {
	if r.values[key] == nil {
		return 0
	}
	n, err := strconv.ParseFloat(fmt.Sprint(r.values[key]), 64)
	if err != nil || math.IsNaN(n) || n < 0 {
		r.fail("“%s” has to be a number of seconds", key)
		return 0
	}
	return int(min(math.Ceil(n), 86400))
}

// scrub makes the texts of a value storable, in place, and refuses what no
// database takes: numbers out of range and endless nesting.
func scrub(value any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it nests more than %d levels deep", maxDepth)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, ok := inner.(string); ok {
				inner = clean(text)
			}
			if name := clean(key); name != key {
				delete(v, key)
				key = name
			}
			v[key] = inner
			if err := storable(inner); err != nil {
				return fmt.Errorf("“%s”: %w", key, err)
			}
			if err := scrub(inner, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for i, inner := range v {
			if text, ok := inner.(string); ok {
				v[i] = clean(text)
			}
			if err := storable(inner); err != nil {
				return err
			}
			if err := scrub(inner, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func storable(value any) error {
	number, ok := value.(json.Number)
	if !ok {
		return nil
	}
	if f, err := number.Float64(); err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("the number %.40s is out of range", number)
	}
	return nil
}

// clean makes a text that Postgres can hold: valid UTF-8 without NUL.
func clean(text string) string {
	if utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
}
