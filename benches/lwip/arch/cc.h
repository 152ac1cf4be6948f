/* What lwIP asks of a compiler: gcc on Linux, where its defaults do. */
