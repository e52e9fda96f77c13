package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const mutantCommand = "conformance-mutant"

// plugin is a provider and automator in a process of its own. fault names what is
// wrong with it; "" is one without a fault.
type plugin struct {
	fault string
	cloud cloud
	in    struct {
		Hostname, ProviderID, IdempotencyKey string
		Fields                               struct{ Token, Do string }
	}
}

func say(message map[string]any) {
	data, err := json.Marshal(message)
	if err != nil {
		os.Exit(70)
	}
	fmt.Printf("%s\n", data)
}

func (p *plugin) is(fault string) bool { return p.fault == fault }

func (p *plugin) done(result map[string]any) {
	result["t"], result["status"] = "result", 0
	say(result)
	if p.is("tells twice") {
		say(result)
	}
	if p.is("leaves a process") {
		sleeper := exec.Command("sleep", "300")
		_ = sleeper.Start()
	}
	if p.is("exits with 1 after success") {
		os.Exit(1)
	}
	os.Exit(0)
}

// end is what an error of the cloud comes to.
func (p *plugin) end(err error, action string) {
	fmt.Fprintln(os.Stderr, err)
	switch {
	case errors.Is(err, errRefused) && p.is("says 1 for refused credentials"):
		os.Exit(1)
	case errors.Is(err, errRefused) && p.is("forgets on refused credentials") && action == "delete":
		p.done(map[string]any{})
	case errors.Is(err, errRefused):
		os.Exit(77)
	case errors.Is(err, errThrottled) && p.is("gives up when throttled"):
		say(map[string]any{"t": "result", "status": 1, "message": "throttled", "retryable": false})
		os.Exit(1)
	case errors.Is(err, errThrottled) && p.is("fails when throttled"):
		os.Exit(1)
	case errors.Is(err, errThrottled) && p.is("says when to come back"):
		say(map[string]any{"t": "result", "status": 1, "message": "throttled", "retry_after": 1})
		os.Exit(1)
	case errors.Is(err, errThrottled) && action == "confirm" && (p.is("gives machines up when throttled") || p.is("keeps machines when throttled")):
		say(map[string]any{"t": "result", "status": 1, "message": "throttled", "retryable": true, "keep_machine": p.is("keeps machines when throttled")})
		os.Exit(1)
	case errors.Is(err, errLost) && p.is("takes a lost answer for nothing made"):
		say(map[string]any{"t": "result", "status": 200, "message": "connection lost"})
		os.Exit(1)
	case errors.Is(err, errThrottled), errors.Is(err, errLost):
		os.Exit(75)
	}
	os.Exit(1)
}

// mutant is the program: fault, directory of the cloud, kind and action.
func mutant(args []string) {
	p := &plugin{fault: args[0], cloud: cloud(args[1])}
	kind, action := args[2], args[3]
	if p.is("ignores SIGTERM") {
		signal.Ignore(syscall.SIGTERM)
	}
	body, _ := io.ReadAll(os.Stdin)
	var request map[string]any
	if json.Unmarshal(body, &request) != nil {
		if p.is("takes garbage for an error of its own") {
			os.Exit(1)
		}
		if p.is("takes an empty request") && len(body) == 0 {
			p.done(map[string]any{"result": map[string]any{"providerid": "m-nothing"}})
		}
		os.Exit(65)
	}
	input, _ := json.Marshal(request["input"])
	if json.Unmarshal(input, &p.in) != nil {
		os.Exit(65)
	}
	if p.is("says the token") {
		say(map[string]any{"t": "log", "level": "debug", "msg": "using " + p.in.Fields.Token})
	}
	if p.is("needs HOME") && os.Getenv("HOME") == "" {
		os.Exit(1)
	}
	if p.is("writes beside itself") {
		_ = os.WriteFile(filepath.Join(os.Getenv("LOOM_PLUGIN_DIR"), "state"), []byte(time.Now().String()), 0o644)
	}
	switch {
	case kind == "automator" && (action != "frobnicate" || p.is("can do anything")):
		p.serve(action)
	case action == "create":
		p.create()
	case action == "confirm":
		p.confirm()
	case action == "delete":
		p.delete()
	case p.is("can do anything"):
		p.done(map[string]any{})
	}
	os.Exit(64)
}

func (p *plugin) create() {
	m, err := p.cloud.create(p.in.Fields.Token, p.in.IdempotencyKey, p.in.Hostname, !p.is("makes a machine each time"))
	if err != nil {
		p.end(err, "create")
	}
	if !p.is("tells the id late") && !p.is("keeps the id to itself") {
		say(map[string]any{"t": "state", "result": map[string]any{"providerid": m.ID}})
	}
	result := map[string]any{"providerid": m.ID, "ssh-auth": map[string]any{"user": "root"}}
	if p.is("keeps the id to itself") {
		delete(result, "providerid")
	}
	if p.is("tells no user") {
		delete(result, "ssh-auth")
	}
	if p.is("dies without a result") {
		os.Exit(0)
	}
	p.done(map[string]any{"result": result})
}

func (p *plugin) confirm() {
	for unseen := 0; ; {
		say(map[string]any{"t": "progress", "msg": "looking"})
		runs, err := p.cloud.look(p.in.Fields.Token, p.in.ProviderID)
		switch {
		case errors.Is(err, errNotFound) && !p.is("gives up on what it cannot see") && unseen < 5:
			unseen++
		case err != nil:
			p.end(err, "confirm")
		case runs || p.is("does not wait"):
			if p.is("gives no address") {
				p.done(map[string]any{})
			}
			if p.is("does not wait") && !runs {
				say(map[string]any{"t": "result", "status": 1, "message": "the machine does not run", "retryable": false})
				os.Exit(1)
			}
			p.done(map[string]any{"ipaddresses": map[string]any{"access_v4": "192.0.2.7"}})
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (p *plugin) delete() {
	id := p.in.ProviderID
	if id == "" && !p.is("deletes by id only") {
		found, err := p.cloud.find(p.in.Fields.Token, p.in.IdempotencyKey)
		if err != nil {
			p.end(err, "delete")
		}
		id = found
	}
	if id != "" && !p.is("only says that it deletes") {
		if err := p.cloud.remove(p.in.Fields.Token, id); err != nil && (!errors.Is(err, errNotFound) || p.is("fails on what is gone")) {
			p.end(err, "delete")
		}
	}
	p.done(map[string]any{})
}

// serve is the automator: its field “do” says what the action comes to.
func (p *plugin) serve(action string) {
	say(map[string]any{"t": "log", "msg": action})
	switch {
	case p.in.Fields.Do == "fail" && !p.is("hides failures"):
		say(map[string]any{"t": "result", "status": 1, "message": "as asked for"})
		os.Exit(1)
	case p.in.Fields.Do == "wait":
		time.Sleep(time.Hour)
	}
	p.done(map[string]any{})
}
