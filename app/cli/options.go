package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"loom/app/config"
)

// optionGroup holds the flags that package config describes.
var optionGroup = &kong.Group{Key: "options", Title: "Options, each also an environment variable:"}

// addOptions adds to each subcommand a flag for each of its options.
func addOptions(k *kong.Kong) error {
	mappers := kong.NewRegistry().RegisterDefaults()
	for _, command := range k.Model.Children {
		for _, o := range config.Options {
			if !slices.Contains(o.For, command.Name) {
				continue
			}
			target := reflect.New(reflect.TypeFor[string]()).Elem()
			if o.Type == "switch" {
				target = reflect.New(reflect.TypeFor[bool]()).Elem()
			}
			help := o.Describe()
			flag := &kong.Flag{Group: optionGroup, PlaceHolder: strings.ToUpper(o.Type),
				Value: &kong.Value{Name: o.Flag(), Help: help, OrigHelp: help, Target: target, Mapper: mappers.ForValue(target), Tag: &kong.Tag{}, DefaultValue: reflect.Zero(target.Type())}}
			flag.Value.Flag = flag
			command.Flags = append(command.Flags, flag)
		}
	}
	return nil
}

// optionsOf returns the options among the flags of a command line, by the names of the flags.
func optionsOf(command *kong.Context) map[string]string {
	options := map[string]string{}
	for _, step := range command.Path {
		if step.Flag != nil && step.Flag.Group == optionGroup {
			options[step.Flag.Name] = fmt.Sprint(step.Flag.Target.Interface())
		}
	}
	return options
}

// usedCommand returns the subcommand that a wrong command line names.
func usedCommand(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if node := wrong.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "loom"
}
