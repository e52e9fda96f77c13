package planner

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"loom/app/loom"
)

func history(words string) []loom.AttemptStatus {
	var h []loom.AttemptStatus
	for _, w := range strings.Fields(words) {
		h = append(h, loom.AttemptStatus(w))
	}
	return h
}

func TestDecide(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	failed := loom.TaskResult{Status: 1, Message: "no route"}
	with := func(change func(*loom.TaskResult)) loom.TaskResult {
		r := failed
		change(&r)
		return r
	}
	interrupted := loom.TaskResult{Status: -1, Interrupted: true, Message: "process lost"}
	waiting := loom.TaskResult{Status: loom.StatusWaits, Interrupted: true, Message: "waits for files"}
	machine := map[string]any{"providerid": "i-1"}
	retry := func(least, most time.Duration) func(Decision) bool {
		return func(d Decision) bool {
			return d.Verdict == Retry && d.Delay >= least && d.Delay <= most && d.First == nil && d.Message == ""
		}
	}
	recreate := func(first ...loom.TaskAction) func(Decision) bool {
		return func(d Decision) bool { return reflect.DeepEqual(d, Decision{Verdict: Recreate, First: first}) }
	}
	fails := func(message string) func(Decision) bool {
		return func(d Decision) bool { return reflect.DeepEqual(d, Decision{Verdict: Fail, Message: message}) }
	}
	s := time.Second
	tests := []struct {
		name string
		in   DecideInput
		ok   func(Decision) bool
	}{
		{"success", DecideInput{Action: loom.ActionStart}, func(d Decision) bool { return reflect.DeepEqual(d, Decision{Verdict: Complete}) }},
		{"first failure waits 5 s", DecideInput{Action: loom.ActionStart, Result: failed}, retry(5*s, 6*s)},
		{"second failure waits 30 s", DecideInput{Action: loom.ActionStart, Result: failed, History: history("failed")}, retry(30*s, 36*s)},
		{"third failure fails", DecideInput{Action: loom.ActionStart, Result: failed, History: history("failed failed")}, fails("failed 3 times: no route")},
		{"limit of one", DecideInput{Action: loom.ActionStart, Result: failed, MaxAttempts: 1}, fails("failed once: no route")},
		{"limit of five", DecideInput{Action: loom.ActionStart, Result: failed, MaxAttempts: 5, History: history("failed failed failed")}, retry(30*s, 36*s)},
		{"interrupted attempts are not tries", DecideInput{Action: loom.ActionStart, Result: failed, History: history("interrupted failed interrupted interrupted")}, retry(30*s, 36*s)},
		{"interrupted starts again without delay", DecideInput{Action: loom.ActionStart, Result: interrupted, History: history("failed failed")}, retry(0, 0)},
		{"nine interruptions in a row", DecideInput{Action: loom.ActionStart, Result: interrupted, History: history(strings.Repeat("interrupted ", 8))}, retry(0, 0)},
		{"ten interruptions in a row", DecideInput{Action: loom.ActionStart, Result: interrupted, History: history(strings.Repeat("interrupted ", 9))},
			fails("was interrupted 10 times in a row: process lost")},
		{"a first wait", DecideInput{Action: loom.ActionCreate, Result: waiting, Made: true, HasMachine: true}, retry(10*s, 12*s)},
		{"a third wait is longer", DecideInput{Action: loom.ActionStart, Result: waiting, History: history("waited interrupted waited")}, retry(30*s, 36*s)},
		{"waiting for hours", DecideInput{Action: loom.ActionStart, Result: waiting, History: history(strings.Repeat("waited ", MaxWaits-2))}, retry(120*s, 144*s)},
		{"waiting for a day", DecideInput{Action: loom.ActionStart, Result: waiting, History: history(strings.Repeat("waited ", MaxWaits-1))},
			fails("waited 720 times in a row: waits for files")},
		{"waits are no interruptions", DecideInput{Action: loom.ActionStart, Result: interrupted, History: history(strings.Repeat("waited ", 50) + "interrupted")}, retry(0, 0)},
		{"waits are no tries", DecideInput{Action: loom.ActionStart, Result: failed, History: history("failed waited waited waited")}, retry(30*s, 36*s)},
		{"ten interruptions not in a row", DecideInput{Action: loom.ActionStart, Result: interrupted,
			History: history("interrupted interrupted failed " + strings.Repeat("interrupted ", 8))}, retry(0, 0)},
		{"an interrupted CONFIRM keeps its machine", DecideInput{Action: loom.ActionConfirm, Result: interrupted, HasMachine: true}, retry(0, 0)},
		{"longer delay asked for", DecideInput{Action: loom.ActionStart, Result: with(func(r *loom.TaskResult) { r.RetryAfter = 90 })}, retry(90*s, 90*s)},
		{"shorter delay asked for", DecideInput{Action: loom.ActionStart, Result: with(func(r *loom.TaskResult) { r.RetryAfter = 1 })}, retry(5*s, 6*s)},
		{"absurd delay asked for", DecideInput{Action: loom.ActionStart, Result: with(func(r *loom.TaskResult) { r.RetryAfter = 1 << 62 })}, retry(time.Hour, time.Hour)},
		{"not retryable", DecideInput{Action: loom.ActionStart, Result: with(func(r *loom.TaskResult) { r.Retryable = &no })}, fails("failed, and trying again would not help: no route")},
		{"retryable", DecideInput{Action: loom.ActionStart, Result: with(func(r *loom.TaskResult) { r.Retryable = &yes })}, retry(5*s, 6*s)},
		{"CONFIRM not retryable", DecideInput{Action: loom.ActionConfirm, Result: with(func(r *loom.TaskResult) { r.Retryable = &no })}, fails("failed, and trying again would not help: no route")},
		{"CONFIRM of a machine from before", DecideInput{Action: loom.ActionConfirm, Result: failed, HasMachine: true}, retry(5*s, 6*s)},
		{"CREATE with a machine from before", DecideInput{Action: loom.ActionCreate, Result: failed, HasMachine: true}, retry(5*s, 6*s)},
		{"CONFIRM", DecideInput{Action: loom.ActionConfirm, Result: failed, Made: true}, recreate(loom.ActionDelete, loom.ActionCreate)},
		{"CONFIRM again", DecideInput{Action: loom.ActionConfirm, Made: true, Result: failed, History: history("failed")}, recreate(loom.ActionDelete, loom.ActionCreate)},
		{"CONFIRM that says nothing of the machine", DecideInput{Action: loom.ActionConfirm, Result: with(func(r *loom.TaskResult) { r.KeepMachine = true }), HasMachine: true, Made: true}, retry(5*s, 6*s)},
		{"CONFIRM that says nothing of the machine, for the third time", DecideInput{Action: loom.ActionConfirm, Result: with(func(r *loom.TaskResult) { r.KeepMachine = true }), HasMachine: true, Made: true, History: history("failed failed")},
			fails("failed 3 times: no route")},
		{"CONFIRM for the third time", DecideInput{Action: loom.ActionConfirm, Result: failed, History: history("failed failed")}, fails("failed 3 times: no route")},
		{"CREATE without a machine", DecideInput{Action: loom.ActionCreate, Result: failed}, retry(5*s, 6*s)},
		{"CREATE with an empty id", DecideInput{Action: loom.ActionCreate, Result: with(func(r *loom.TaskResult) { r.Result = map[string]any{"providerid": ""} })}, retry(5*s, 6*s)},
		{"CREATE with a machine", DecideInput{Action: loom.ActionCreate, Made: true, Result: with(func(r *loom.TaskResult) { r.Result = machine })}, recreate(loom.ActionDelete)},
		{"CREATE with a machine known before", DecideInput{Action: loom.ActionCreate, Result: failed, HasMachine: true, Made: true}, recreate(loom.ActionDelete)},
		{"CREATE with a machine for the third time", DecideInput{Action: loom.ActionCreate, Result: failed, HasMachine: true, History: history("failed failed")}, fails("failed 3 times: no route")},
		{"DELETE is retried as any other", DecideInput{Action: loom.ActionDelete, Result: failed, HasMachine: true}, retry(5*s, 6*s)},
		{"timed out is a failed try", DecideInput{Action: loom.ActionStart, Result: loom.TaskResult{Status: -1, Message: "timed out after 1800 s"}, History: history("failed failed")},
			fails("failed 3 times: timed out after 1800 s")},
		{"a CREATE that timed out without a machine looks for it again", DecideInput{Action: loom.ActionCreate, Result: loom.TaskResult{Status: -1, Message: "timed out after 600 s"}}, retry(5*s, 6*s)},
		{"macros that cannot be filled", DecideInput{Action: loom.ActionStart, Result: loom.TaskResult{Status: -1, Retryable: &no, Message: "Exception while expanding macros: x"}},
			fails("failed, and trying again would not help: Exception while expanding macros: x")},
		{"DELETE for the third time", DecideInput{Action: loom.ActionDelete, Result: failed, HasMachine: true, History: history("failed failed")}, fails("failed 3 times: no route")},
		{"CREATE not retryable keeps its machine", DecideInput{Action: loom.ActionCreate, Result: with(func(r *loom.TaskResult) { r.Retryable = &no }), HasMachine: true},
			fails("failed, and trying again would not help: no route")},
		{"aborted and interrupted is aborted", DecideInput{Action: loom.ActionStart, Result: loom.TaskResult{Status: -1, Aborted: true, Interrupted: true, Message: "by ana"}}, fails("aborted: by ana")},
		{"aborted", DecideInput{Action: loom.ActionStart, Result: loom.TaskResult{Status: -1, Aborted: true, Message: "aborted by ana"}}, fails("aborted: aborted by ana")},
		{"no message", DecideInput{Action: loom.ActionStart, Result: loom.TaskResult{Status: 1}, MaxAttempts: 1}, fails("failed once")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := Decide(test.in); !test.ok(got) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestEveryTaskEnds: whatever happens, a task completes or is given up after a
// bounded number of attempts, tries are counted right, and no delay is too long.
func TestEveryTaskEnds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		limit := r.IntN(6)
		most := limit
		if limit == 0 {
			most = DefaultMaxAttempts
		}
		action := loom.TaskActions[r.IntN(len(loom.TaskActions))]
		var history []loom.AttemptStatus
		tries := 0
		for {
			result := loom.TaskResult{Status: 1, RetryAfter: r.IntN(10_000) - 100}
			if r.IntN(3) > 0 {
				result.Interrupted = true
				if r.IntN(2) == 0 {
					result.Status = loom.StatusWaits
				}
			} else {
				tries++
			}
			d := Decide(DecideInput{Action: action, Row: loom.TaskID(seed), History: history, Result: result, HasMachine: r.IntN(2) == 0, MaxAttempts: limit})
			if d.Verdict == Fail {
				if tries < most && !result.Interrupted || d.Message == "" {
					t.Fatalf("seed %d: given up after %d of %d tries: %q", seed, tries, most, d.Message)
				}
				break
			}
			if d.Delay < 0 || d.Delay > MaxRetryDelay || d.Verdict == Complete || result.Interrupted && d.Verdict != Retry {
				t.Fatalf("seed %d: %+v follows", seed, d)
			}
			history = append(history, outcomeOf(result))
			if len(history) > most*(MaxInterruptions+MaxWaits) {
				t.Fatalf("seed %d: no end after %d attempts", seed, len(history))
			}
		}
	}
}

func outcomeOf(r loom.TaskResult) loom.AttemptStatus {
	if r.Interrupted && r.Status == loom.StatusWaits {
		return loom.AttemptWaited
	}
	if r.Interrupted {
		return loom.AttemptInterrupted
	}
	return loom.AttemptFailed
}

func TestRetryDelaysSpread(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]int{}
	var low, high int
	for row := loom.TaskID(1); row <= 1000; row++ {
		in := DecideInput{Action: loom.ActionStart, Row: row, Result: loom.TaskResult{Status: 1}}
		d := Decide(in).Delay
		if d != Decide(in).Delay {
			t.Fatal("the same task gets another delay")
		}
		seen[d]++
		if d < 5500*time.Millisecond {
			low++
		} else {
			high++
		}
	}
	if len(seen) < 500 || low < 400 || high < 400 {
		t.Errorf("1000 tasks get %d delays, %d short and %d long ones", len(seen), low, high)
	}
}

func TestFinal(t *testing.T) {
	t.Parallel()
	task := func(status loom.TaskStatus, codes ...int) TaskEnd { return TaskEnd{status, codes} }
	done, dropped, running := task(loom.TaskComplete), task(loom.TaskDropped), task(loom.TaskRunning)
	create := func(tasks ...TaskEnd) FinalInput {
		return FinalInput{Action: loom.ClusterCreate, Status: loom.OperationRunning, Message: "first failure", Tasks: tasks}
	}
	with := func(in FinalInput, changes ...func(*FinalInput)) FinalInput {
		for _, change := range changes {
			change(&in)
		}
		return in
	}
	aborted := func(in *FinalInput) {
		in.Aborted, in.Message, in.Status = true, "Aborted by ana.", loom.OperationFailing
	}
	action := func(a loom.ClusterAction) func(*FinalInput) { return func(in *FinalInput) { in.Action = a } }
	undo := func(in *FinalInput) { in.Undo = true }
	end := func(o loom.OperationStatus, c loom.ClusterStatus, m string) *FinalState { return &FinalState{o, c, m} }
	tests := []struct {
		name string
		in   FinalInput
		want *FinalState
	}{
		{"complete", create(done, task(loom.TaskSkipped)), end(loom.OperationComplete, loom.ClusterActive, "")},
		{"complete delete", with(create(done), action(loom.ClusterDelete)), end(loom.OperationComplete, loom.ClusterTerminated, "")},
		{"empty plan", with(create(), action(loom.ClusterDelete)), end(loom.OperationComplete, loom.ClusterTerminated, "")},
		{"still running", create(task(loom.TaskFailed, 1), running), nil},
		{"still waiting", create(done, task(loom.TaskReady)), nil},
		{"waiting for a retry", create(done, task(loom.TaskReady, 1)), nil},
		{"failed create", create(done, task(loom.TaskFailed, 1), dropped), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"failed delete", with(create(task(loom.TaskFailed, 201)), action(loom.ClusterDelete)), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"failed configure", with(create(task(loom.TaskFailed, 1)), action(loom.ClusterConfigure)), end(loom.OperationFailed, loom.ClusterInconsistent, "first failure")},
		{"failed add services", with(create(task(loom.TaskFailed, 200)), action(loom.AddServices)), end(loom.OperationFailed, loom.ClusterInconsistent, "first failure")},
		{"nothing made", create(task(loom.TaskFailed, 201, 200, 299), task(loom.TaskReady, 202), dropped), end(loom.OperationFailed, loom.ClusterTerminated, NothingMade+": first failure")},
		{"something made", create(task(loom.TaskFailed, 201), done), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"code 300", create(task(loom.TaskFailed, 300)), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"code 199", create(task(loom.TaskFailed, 199)), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"one try may have made something", create(task(loom.TaskFailed, -1, 201)), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"a machine of an earlier operation", with(create(task(loom.TaskFailed, 201)), func(in *FinalInput) { in.MachinesExist = true }),
			end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"aborted before anything ran", with(create(dropped, dropped), aborted), end(loom.OperationAborted, loom.ClusterTerminated, "Aborted by ana.")},
		{"aborted, tasks not dropped yet", with(create(task(loom.TaskReady), task(loom.TaskBlocked)), aborted), end(loom.OperationAborted, loom.ClusterTerminated, "Aborted by ana.")},
		{"aborted in the middle", with(create(done, dropped), aborted), end(loom.OperationAborted, loom.ClusterIncomplete, "Aborted by ana.")},
		{"aborted within CREATE", with(create(task(loom.TaskDropped, -1)), aborted), end(loom.OperationAborted, loom.ClusterIncomplete, "Aborted by ana.")},
		{"aborted restart", with(create(dropped), func(in *FinalInput) { aborted(in); in.Action = loom.RestartServices }),
			end(loom.OperationAborted, loom.ClusterInconsistent, "Aborted by ana.")},
		{"start hook refused", with(create(dropped), func(in *FinalInput) { in.Status = loom.OperationFailing }), end(loom.OperationFailed, loom.ClusterTerminated, "first failure")},
		{"undo", with(create(done, task(loom.TaskFailed, 1)), undo), end(loom.OperationRollingBack, loom.ClusterPending, "first failure")},
		{"undo what may have begun", with(create(task(loom.TaskFailed, 1), dropped), undo, action(loom.ClusterUpgrade)), end(loom.OperationRollingBack, loom.ClusterPending, "first failure")},
		{"undo a layout alone", with(create(dropped), undo, action(loom.ClusterShrink)), end(loom.OperationRollingBack, loom.ClusterPending, "first failure")},
		{"not undone", with(create(done, task(loom.TaskFailed, 1)), undo, action(loom.ClusterRepair)), end(loom.OperationFailed, loom.ClusterInconsistent, "first failure")},
		{"nothing to undo", with(create(task(loom.TaskFailed, 201)), undo), end(loom.OperationFailed, loom.ClusterTerminated, NothingMade+": first failure")},
		{"undone create", with(create(done), func(in *FinalInput) { in.Status = loom.OperationRollingBack }), end(loom.OperationRolledBack, loom.ClusterTerminated, "first failure")},
		{"undone after an abort", with(create(done), func(in *FinalInput) { aborted(in); in.Status = loom.OperationRollingBack }),
			end(loom.OperationRolledBack, loom.ClusterTerminated, "Aborted by ana.")},
		{"undone add services", with(create(done), func(in *FinalInput) { in.Status, in.Action = loom.OperationRollingBack, loom.AddServices }),
			end(loom.OperationRolledBack, loom.ClusterActive, "first failure")},
		{"undo failed", with(create(task(loom.TaskFailed, 1)), func(in *FinalInput) { in.Status = loom.OperationRollingBack }), end(loom.OperationFailed, loom.ClusterIncomplete, "first failure")},
		{"undo running", with(create(running), func(in *FinalInput) { in.Status = loom.OperationRollingBack }), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, over := Final(test.in)
			if over != (test.want != nil) || over && got != *test.want {
				t.Errorf("got %+v, %v, want %+v", got, over, test.want)
			}
		})
	}
}
