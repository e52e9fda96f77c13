// Package lab holds the tools of those who work on Loom: bench takes the figures of a
// host, soak kills, freezes and cuts off processes and looks what is lost. They start
// Loom as package wiring builds it, and as processes of its own binary.
package lab

import "loom/app/wiring"

// environment is what all subcommands share, with the methods of those of this package.
type environment struct{ *wiring.Environment }
