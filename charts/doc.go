// Package charts holds the Helm charts, and tests them with Helm itself.
package charts
