// Package drain chooses the nodes that are no longer needed.
package drain
