package loom

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxTaskLimit is the longest time limit that an attempt of a task may be given.
const MaxTaskLimit = 24 * time.Hour

// DefaultTaskLimit is the time limit of an attempt where nothing else is set.
func DefaultTaskLimit(action TaskAction) time.Duration {
	switch action {
	case ActionCreate, ActionKeys, ActionReboot:
		return 600 * time.Second
	case ActionDelete:
		return 900 * time.Second
	case ActionConfirm, ActionBootstrap, ActionInstall, ActionRemove, ActionConfigure, ActionInitialize, ActionStart, ActionStop, ActionDrain:
	}
	return 1800 * time.Second
}

// TaskLimits are time limits of attempts that differ from the defaults. The zero
// value has none.
type TaskLimits struct {
	byAction map[TaskAction]time.Duration
	byPlugin map[string]map[TaskAction]time.Duration
}

// ParseTaskLimits reads limits such as “create=900, shell/install=2h”: an action,
// or a plugin with an action, and seconds or a duration from 1 s to 24 h. A pair
// named twice is an error.
func ParseTaskLimits(text string) (TaskLimits, error) {
	var l TaskLimits
	for _, item := range strings.Split(text, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			return TaskLimits{}, fmt.Errorf("%q is no limit; write an action and a time, such as create=900 or shell/install=2h", item)
		}
		limit, err := parseLimit(strings.TrimSpace(value))
		if err != nil {
			return TaskLimits{}, fmt.Errorf("the limit %q: %w", item, err)
		}
		plugin, action, of := strings.Cut(strings.TrimSpace(name), "/")
		if !of {
			plugin, action = "", plugin
		} else if plugin == "" {
			return TaskLimits{}, fmt.Errorf("the limit %q names no plugin before the slash", item)
		}
		a := TaskAction(strings.ToLower(action))
		if !a.Valid() {
			return TaskLimits{}, fmt.Errorf("the limit %q: %q is no action of a task; there are %s", item, action, actionWords())
		}
		if !l.set(plugin, a, limit) {
			return TaskLimits{}, fmt.Errorf("the limit %q: %q has a limit already", item, name)
		}
	}
	return l, nil
}

func parseLimit(text string) (time.Duration, error) {
	limit, err := time.ParseDuration(text)
	if seconds, numberErr := strconv.Atoi(text); numberErr == nil && seconds >= 0 && seconds <= int(MaxTaskLimit/time.Second) {
		limit, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || limit < time.Second || limit > MaxTaskLimit {
		return 0, fmt.Errorf("%q is no time from 1 s to 24 h; write seconds, or a duration such as 90m", text)
	}
	return limit, nil
}

func actionWords() string {
	words := make([]string, len(TaskActions))
	for i, a := range TaskActions {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}

func (l *TaskLimits) set(plugin string, action TaskAction, limit time.Duration) bool {
	if l.byAction == nil {
		l.byAction, l.byPlugin = map[TaskAction]time.Duration{}, map[string]map[TaskAction]time.Duration{}
	}
	of := l.byAction
	if plugin != "" {
		if l.byPlugin[plugin] == nil {
			l.byPlugin[plugin] = map[TaskAction]time.Duration{}
		}
		of = l.byPlugin[plugin]
	}
	if _, there := of[action]; there {
		return false
	}
	of[action] = limit
	return true
}

// Of gives the limit of an attempt that the plugins carry out one after another.
// timeouts are those of the plugin types themselves, in seconds. A limit set here
// for plugin and action goes first, then the plugin's own, then the one set here
// for the action, then the default. Of several plugins the longest one counts.
func (l TaskLimits) Of(action TaskAction, timeouts map[string]PluginTimeouts, plugins ...string) time.Duration {
	longest := time.Duration(0)
	for _, plugin := range plugins {
		limit, ok := l.byPlugin[plugin][action]
		if seconds := timeouts[plugin][action]; !ok && seconds > 0 {
			limit, ok = ownLimit(seconds), true
		}
		if !ok {
			limit = l.ofAction(action)
		}
		longest = max(longest, limit)
	}
	if longest == 0 {
		longest = l.ofAction(action)
	}
	return longest
}

// ownLimit reads a limit of a plugin type, however far it is out of bounds.
func ownLimit(seconds int) time.Duration {
	return time.Duration(min(seconds, int(MaxTaskLimit/time.Second))) * time.Second
}

func (l TaskLimits) ofAction(action TaskAction) time.Duration {
	if limit, ok := l.byAction[action]; ok {
		return limit
	}
	return DefaultTaskLimit(action)
}

// Shortest is the shortest limit that any attempt may have.
func (l TaskLimits) Shortest(timeouts map[string]PluginTimeouts) time.Duration {
	return slices.Min(l.all(timeouts))
}

// Longest is the longest of all limits set here and by default.
func (l TaskLimits) Longest() time.Duration { return slices.Max(l.all(nil)) }

func (l TaskLimits) all(timeouts map[string]PluginTimeouts) []time.Duration {
	var all []time.Duration
	for _, a := range TaskActions {
		all = append(all, l.ofAction(a))
	}
	for _, of := range l.byPlugin {
		for _, limit := range of {
			all = append(all, limit)
		}
	}
	for _, of := range timeouts {
		for _, seconds := range of {
			if seconds > 0 {
				all = append(all, ownLimit(seconds))
			}
		}
	}
	return all
}

// PluginTimeouts are the time limits that a plugin type sets for its actions, in
// seconds.
type PluginTimeouts map[TaskAction]int

// check gives the errors of the field timeouts.
func (t PluginTimeouts) check() []FieldError {
	var errs []FieldError
	actions := make([]string, 0, len(t))
	for a := range t {
		actions = append(actions, string(a))
	}
	slices.Sort(actions)
	for _, a := range actions {
		at := "timeouts." + a
		if !TaskAction(a).Valid() {
			errs = append(errs, FieldError{at, fmt.Sprintf("“%s” is no action of a task; there are %s.", a, actionWords())})
		}
		if n := t[TaskAction(a)]; n < 1 || n > int(MaxTaskLimit/time.Second) {
			errs = append(errs, FieldError{at, fmt.Sprintf("%d is no number of seconds from 1 to %d.", n, int(MaxTaskLimit/time.Second))})
		}
	}
	return errs
}
