// SPDX-License-Identifier: Apache-2.0

// Package laws says what must hold while package sim runs the system, whatever
// the order of things and whatever goes wrong. Laws look at the truth: what the
// API server has stored and which instances run.
//
// The process cannot know what it has not been told yet. Where its caches may
// lag, a law asks whether what it did was right at any moment of the last Lag.
package laws
